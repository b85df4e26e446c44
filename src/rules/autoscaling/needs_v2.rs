//! RF210: features of autoscaler v2 without it.

use serde_json::Value;

use crate::policy::Mode;
use crate::ray::cluster::V2_ENV;
use crate::ray::{Cluster, Group};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF210
pub static RULE: Rule = Rule {
    id: RuleId(210),
    name: "needs-v2",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's `idleTimeoutSeconds` or `priority` without autoscaler v2",
    page: RulePage(include_str!("needs_v2.md")),
    why: "Only autoscaler v2 supports it. Without v2, KubeRay stops reconciling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Worker,
    mode: Mode::Enforce,
    // In Kubernetes the last entry of a name is the one that holds.
    faults: r#"s.version == 'v2' || (s.env.size() > 0 && s.env[s.env.size() - 1].?value.orValue('') in ['1', 'true']) ? []
: (has(g.spec.idleTimeoutSeconds) ? ['.idleTimeoutSeconds needs autoscaler v2'] : [])
+ (has(g.spec.priority) && g.spec.priority != 0 ? ['.priority needs autoscaler v2'] : [])"#,
    fix: "Set autoscalerOptions.version: v2, or remove it.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster().filter(|cluster| !cluster.uses_v2()) else {
        return;
    };
    for group in &cluster.workers {
        let idle = group.spec.get("idleTimeoutSeconds");
        if let Some(value) = idle.filter(|value| !value.is_null()) {
            report(cluster, group, "idleTimeoutSeconds", value, findings);
        }
        let priority = group.spec.get("priority");
        if let Some(value) = priority.filter(|v| !v.is_null() && v.as_f64() != Some(0.0)) {
            report(cluster, group, "priority", value, findings);
        }
    }
}

fn report(
    cluster: &Cluster<'_>,
    group: &Group<'_>,
    key: &'static str,
    value: &Value,
    findings: &mut Findings,
) {
    findings.add(
        RULE.finding(
            group.path().key(key),
            format!(
                "{} needs autoscaler v2, which this cluster does not choose",
                shown(value)
            ),
            fix(cluster, key),
        )
        .valued(shown(value)),
    );
}

fn fix(cluster: &Cluster<'_>, key: &str) -> String {
    if !cluster.autoscaling() {
        return format!("Remove {key}: without enableInTreeAutoscaling it has no effect.");
    }
    match cluster.v2_env() {
        Some(_) => format!(
            "Set autoscalerOptions.version: v2 and remove {V2_ENV} from the head's env; or remove \
             {key}."
        ),
        None => format!("Set autoscalerOptions.version: v2, or remove {key}."),
    }
}
