//! RF210: features of autoscaler v2 without it.

use crate::ray::cluster::V2_ENV;
use crate::rules::prelude::*;
use crate::rules::shared::priority;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(210),
    name: "needs-v2",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's `idleTimeoutSeconds` or `priority` without autoscaler v2",
    page: include_str!("needs_v2.md"),
    why: "Only autoscaler v2 supports it. Without v2, KubeRay stops reconciling the whole cluster.",
    cel: Cel::Covered(&[Check {
        each: Each::Worker,
        // In Kubernetes the last entry of a name is the one that holds.
        faults: r#"s.version == 'v2' || (s.env.size() > 0 && s.env[s.env.size() - 1].?value.orValue('') in ['1', 'true']) ? []
: (has(g.spec.idleTimeoutSeconds) ? ['.idleTimeoutSeconds needs autoscaler v2'] : [])
+ (has(g.spec.priority) && g.spec.priority != 0 ? ['.priority needs autoscaler v2'] : [])"#,
        fix: "Set autoscalerOptions.version: v2, or remove it.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster().filter(|cluster| !cluster.uses_v2()) else {
        return;
    };
    // Newer Ray versions choose v2 by themselves, which does not help, because KubeRay checks the spec
    // (`validateWorkerGroupIdleTimeout`).
    for group in &cluster.workers {
        let idle = group.spec.get("idleTimeoutSeconds");
        for (key, value) in [
            ("idleTimeoutSeconds", idle.filter(|value| !value.is_null())),
            ("priority", priority(group)),
        ] {
            let Some(value) = value.map(shown) else {
                continue;
            };
            let fix = if !cluster.autoscaling() {
                format!("Remove {key}: without enableInTreeAutoscaling it has no effect.")
            } else if cluster.v2_env().is_some() {
                format!(
                    "Set autoscalerOptions.version: v2 and remove {V2_ENV} from the head's env; or \
                     remove {key}."
                )
            } else {
                format!("Set autoscalerOptions.version: v2, or remove {key}.")
            };
            let problem =
                format!("{value} needs autoscaler v2, which this cluster does not choose");
            let finding = RULE.finding(group.path().key(key), problem, fix);
            findings.push(finding.valued(value));
        }
    }
}
