//! RF208: a restart policy with which Ray comes back in a pod.

use crate::policy::Mode;
use crate::ray::{AutoscalerVersion, Cluster, Group, since, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF208
pub static RULE: Rule = Rule {
    id: RuleId(208),
    name: "restart-policy",
    mode: OwnMode::ByCase("Enforce where KubeRay refuses it, else Warn"),
    summary: "`restartPolicy` other than `Never` with autoscaling",
    page: RulePage(include_str!("restart_policy.md")),
    why: "KubeRay stops reconciling the whole cluster because of it: with v2 a pod must end when \
          Ray ends in it.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Group,
        mode: Mode::Enforce,
        faults: r#"s.auto && s.version == 'v2' && !s.cluster.?rayVersion.orValue('').matches(r'^v?(2\.(5[6-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)\.[0-9])') && !(g.spec.?template.?spec.?restartPolicy.orValue('') in ['', 'Never'])
  ? ['.template.spec.restartPolicy ' + g.spec.template.spec.restartPolicy + ' is not allowed with autoscalerOptions.version: v2'] : []"#,
        fix: "Write restartPolicy: Never, or remove it.",
    }],
    "Ray from 2.56.0 on and clusters without version: v2 are not checked.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let is_v2 = cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    if is_v2 && may_restart(subject, cluster) {
        return;
    }
    for group in cluster.groups() {
        // KubeRay takes an empty policy for an absent one (its `utils/validation.go`).
        let Some(policy) = policy(group).filter(|policy| !matches!(*policy, "" | "Never")) else {
            continue;
        };
        let policy = shown_text(policy);
        let found = |problem: &str| {
            let path = group.pod_spec_path().key("restartPolicy");
            let fix = "Write restartPolicy: Never, or remove it.";
            RULE.finding(path, format!("{policy} {problem}"), fix)
                .valued(policy.clone())
        };
        if is_v2 {
            findings.add(found("is not allowed with autoscalerOptions.version: v2"));
        } else if !group.is_head() {
            let found = found("starts Ray again in workers that the autoscaler has ended");
            findings.add(found.because(RETURNS).in_mode(Mode::Warn));
        }
    }
}

const RETURNS: &str = "They come back as other nodes and take work, which is lost when their pods are \
                       deleted, and the autoscaler may stop deleting pods.";

/// Whether this KubeRay lets pods of this Ray restart.
fn may_restart(subject: &Subject<'_>, cluster: &Cluster<'_>) -> bool {
    subject.settings.kuberay >= since::KUBERAY_WITH_RESTARTS
        && cluster
            .ray_version()
            .is_some_and(|ray| ray >= since::RESTARTS)
}

fn policy<'a>(group: &Group<'a>) -> Option<&'a str> {
    text_at(group.pod_spec()?, "restartPolicy")
}
