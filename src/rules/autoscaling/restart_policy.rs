//! RF208: a restart policy that autoscaler v2 does not allow.

use crate::policy::Mode;
use crate::ray::{AutoscalerVersion, Cluster, Group, text_at};
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF208
pub static RULE: Rule = Rule {
    id: RuleId(208),
    name: "restart-policy",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`restartPolicy` other than `Never` with autoscaler v2",
    what: "Checks the pod templates of all groups, the head included, where autoscaling is on and \
           `autoscalerOptions.version` is `v2`, and reports a `restartPolicy` other than `Never`. \
           The environment variable that chooses v2 does not count, as in KubeRay.",
    why: "KubeRay stops reconciling the whole cluster because of it: with v2 a pod must end when \
          Ray ends in it.",
    bad: "
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2}
  workerGroupSpecs:
  - groupName: small
    template:
      spec: {restartPolicy: OnFailure}
",
    good: "
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2}
  workerGroupSpecs:
  - groupName: small
    template:
      spec: {restartPolicy: Never}
",
    without: "KubeRay reports the spec as invalid in an Event and changes no pod until it is fixed \
              (KubeRay, `ValidateRayClusterSpec`). Where the field is absent KubeRay sets Never \
              itself.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Group,
    mode: Mode::Enforce,
    faults: r#"s.auto && s.version == 'v2' && !(g.spec.?template.?spec.?restartPolicy.orValue('') in ['', 'Never'])
  ? ['.template.spec.restartPolicy ' + g.spec.template.spec.restartPolicy + ' is not allowed with autoscalerOptions.version: v2'] : []"#,
    fix: "Write restartPolicy: Never, or remove it.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let v2 = Some(AutoscalerVersion::V2);
    let cluster = subject
        .autoscaled()
        .filter(|c| c.autoscaler_version() == v2);
    for group in cluster.into_iter().flat_map(Cluster::groups) {
        match policy(group) {
            // KubeRay takes an empty policy for an absent one (its `utils/validation.go`).
            None | Some("" | "Never") => {}
            Some(policy) => findings.add(
                RULE.finding(
                    group.pod_spec_path().key("restartPolicy"),
                    format!(
                        "{} is not allowed with autoscalerOptions.version: v2",
                        shown_text(policy)
                    ),
                    "Write restartPolicy: Never, or remove it.",
                )
                .valued(shown_text(policy)),
            ),
        }
    }
}

fn policy<'a>(group: &Group<'a>) -> Option<&'a str> {
    text_at(group.pod_spec()?, "restartPolicy")
}
