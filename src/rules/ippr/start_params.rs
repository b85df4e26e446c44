//! RF105: `num-cpus` or `memory` in the start parameters of a listed group.

use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown;

/// RF105
pub static RULE: Rule = Rule {
    id: RuleId(105),
    name: "ippr-start-params",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`num-cpus` or `memory` in `rayStartParams` of a group that grows in place",
    what: "Checks `rayStartParams` of every group that `ray.io/ippr` lists, the head included, and \
           reports `num-cpus` and `memory`, whatever their value.",
    why: "Ray refuses the whole annotation because of it and stops autoscaling the cluster.",
    bad: r#"
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
    rayStartParams: {num-cpus: "1"}
"#,
    good: r#"
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
    rayStartParams: {}
"#,
    without: "Ray 2.56 and later raise ValueError while they read the annotation, before pods are \
              listed, so no group of the cluster scales until it is fixed; only the autoscaler's \
              log says why (Ray, KubeRay IPPR provider, `validate_and_set_ippr_specs`).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Listed,
        mode: Mode::Enforce,
        faults: r#"['num-cpus', 'memory'].filter(k, k in g.params).map(k, '.rayStartParams.' + k + ' "' + string(g.params[k]) + '" fixes the size of a group that is to grow in place')"#,
        fix: "Remove it; Ray takes the size from the ray container's limits.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for (group, _) in subject.listed_groups() {
        for key in ["num-cpus", "memory"] {
            let Some(value) = group.start_param(key) else {
                continue;
            };
            findings.add(
                RULE.finding(
                    group.start_param_path(key),
                    format!(
                        "{} fixes the size of a group that is to grow in place",
                        shown(value)
                    ),
                    format!(
                        "Remove {key}; Ray takes the size from the ray container's limits. Or \
                         remove {} from the ray.io/ippr annotation.",
                        group.title(),
                    ),
                )
                .valued(shown(value)),
            );
        }
    }
}
