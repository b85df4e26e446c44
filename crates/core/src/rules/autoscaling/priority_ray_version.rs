//! RF228: a group's priority with a Ray that knows none.

use crate::ray::since::PRIORITY as FIRST;
use crate::rules::prelude::*;
use crate::rules::shared::priority;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(228),
    name: "priority-ray-version",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's `priority` with `rayVersion` absent or below 2.56.0",
    page: include_str!("priority_ray_version.md"),
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster.",
    cel: Cel::Covered(&[Check {
        each: Each::Worker,
        faults: r#"has(g.spec.priority) && g.spec.priority != 0 && !s.cluster.?rayVersion.orValue('').matches(r'^v?(2\.(5[6-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)\.[0-9])')
  ? ['.priority needs Ray 2.56.0, and rayVersion is "' + s.cluster.?rayVersion.orValue('') + '"'] : []"#,
        fix: "Set rayVersion to the images' version if that is 2.56.0 or newer; or remove priority.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    // KubeRay goes by `rayVersion` alone, from 1.7 on (`validateWorkerGroupPriority`).
    let version = match (cluster.ray_version(), cluster.ray_version_text()) {
        (Some(version), _) if version >= FIRST => return,
        (Some(version), _) => format!("rayVersion is {version}"),
        (None, Some(text)) => format!("rayVersion is {}, which is not a version", shown_text(text)),
        (None, None) => "rayVersion is absent".to_owned(),
    };
    for group in &cluster.workers {
        let Some(priority) = priority(group).map(shown) else {
            continue;
        };
        let finding = RULE.finding(
            group.path().key("priority"),
            format!("{priority} needs Ray {FIRST}, and {version}"),
            format!(
                "Set rayVersion to the images' version if that is {FIRST} or newer; or remove \
                 priority."
            ),
        );
        findings.push(finding.valued(priority));
    }
}
