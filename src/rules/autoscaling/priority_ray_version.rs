//! RF228: a group's priority with a Ray that knows none.

use serde_json::Value;

use crate::policy::Mode;
use crate::ray::Cluster;
use crate::ray::since::PRIORITY as FIRST;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{shown, shown_text};

/// RF228
pub static RULE: Rule = Rule {
    id: RuleId(228),
    name: "priority-ray-version",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's `priority` with `rayVersion` absent or below 2.56.0",
    page: RulePage(include_str!("priority_ray_version.md")),
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Worker,
    mode: Mode::Enforce,
    faults: r#"has(g.spec.priority) && g.spec.priority != 0 && !s.cluster.?rayVersion.orValue('').matches(r'^v?(2\.(5[6-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)\.[0-9])')
  ? ['.priority needs Ray 2.56.0, and rayVersion is "' + s.cluster.?rayVersion.orValue('') + '"'] : []"#,
    fix: "Set rayVersion to the images' version if that is 2.56.0 or newer; or remove priority.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    if cluster
        .ray_version()
        .is_some_and(|version| version >= FIRST)
    {
        return;
    }
    for group in &cluster.workers {
        let Some(priority) = group.spec.get("priority").filter(|value| is_set(value)) else {
            continue;
        };
        findings.add(
            RULE.finding(
                group.path().key("priority"),
                format!("{} needs Ray {FIRST}, and {}", shown(priority), version(cluster)),
                format!("Set rayVersion to the images' version if that is {FIRST} or newer; or remove priority."),
            )
            .valued(shown(priority)),
        );
    }
}

fn is_set(priority: &Value) -> bool {
    !priority.is_null() && priority.as_f64() != Some(0.0)
}

/// What `rayVersion` says.
fn version(cluster: &Cluster<'_>) -> String {
    match (cluster.ray_version(), cluster.ray_version_text()) {
        (Some(version), _) => format!("rayVersion is {version}"),
        (None, Some(text)) => format!("rayVersion is {}, which is not a version", shown_text(text)),
        (None, None) => "rayVersion is absent".to_owned(),
    }
}
