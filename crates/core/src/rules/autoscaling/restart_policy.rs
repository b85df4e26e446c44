//! RF208: a restart policy with which Ray comes back in a pod.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(208),
    name: "restart-policy",
    mode: OwnMode::ByCase("Enforce where KubeRay refuses it, else Warn"),
    summary: "`restartPolicy` other than `Never` with autoscaling",
    page: include_str!("restart_policy.md"),
    why: "KubeRay stops reconciling the whole cluster because of it: with v2 a pod must end when \
          Ray ends in it.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Group,
            faults: r#"s.auto && s.version == 'v2' && !s.cluster.?rayVersion.orValue('').matches(r'^v?(2\.(5[6-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)\.[0-9])') && !(g.spec.?template.?spec.?restartPolicy.orValue('') in ['', 'Never'])
  ? ['.template.spec.restartPolicy ' + g.spec.template.spec.restartPolicy + ' is not allowed with autoscalerOptions.version: v2'] : []"#,
            fix: "Write restartPolicy: Never, or remove it.",
        }],
        "Ray from 2.56.0 on and clusters without version: v2 are not checked.",
    ),
    check,
};

const RETURNS: &str = "They come back as other nodes and take work, which is lost when their pods are \
                       deleted, and the autoscaler may stop deleting pods.";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let is_v2 = cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    // Such a KubeRay lets pods of such a Ray restart.
    let may_restart = subject.settings.kuberay >= since::KUBERAY_WITH_RESTARTS
        && cluster
            .ray_version()
            .is_some_and(|ray| ray >= since::RESTARTS);
    if is_v2 && may_restart {
        return;
    }
    for group in cluster.groups() {
        let policy = group.pod_spec.and_then(|pod| pod.text("restartPolicy"));
        // KubeRay takes an empty policy for an absent one (its `utils/validation.go`).
        let Some(policy) = policy.filter(|policy| !matches!(*policy, "" | "Never")) else {
            continue;
        };
        let policy = shown_text(policy);
        let finding = |problem: &str| {
            let path = group.pod_spec_path().key("restartPolicy");
            let fix = "Write restartPolicy: Never, or remove it.";
            RULE.finding(path, format!("{policy} {problem}"), fix)
                .valued(policy.clone())
                .mended_by("Never")
        };
        if is_v2 {
            findings.push(finding("is not allowed with autoscalerOptions.version: v2"));
        } else if !group.is_head() {
            let finding = finding("starts Ray again in workers that the autoscaler has ended");
            findings.push(finding.because(RETURNS).in_mode(Mode::Warn));
        }
    }
}
