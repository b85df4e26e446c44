//! RF212: a suspended worker group in a cluster that is scaled.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(212),
    name: "group-suspend",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`suspend: true` on a worker group with autoscaling on",
    page: include_str!("group_suspend.md"),
    why: "The autoscaler does not know about suspended groups, so KubeRay stops reconciling the \
          whole cluster.",
    cel: Cel::Covered(&[Check {
        each: Each::Worker,
        faults: r#"s.auto && g.spec.?suspend.orValue(false) ? ['.suspend suspends the group while autoscaling is on'] : []"#,
        fix: "Remove suspend; write 0 for replicas, minReplicas and maxReplicas to have no workers.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let cluster = subject.autoscaled().into_iter();
    for group in cluster.flat_map(|cluster| &cluster.workers) {
        // The autoscaler knows nothing of suspended groups, so KubeRay refuses both together
        // (`ValidateRayClusterSpec`).
        if group.spec.is_true("suspend") {
            let finding = RULE.finding(
                group.path().key("suspend"),
                format!("suspends {} while autoscaling is on", group.title()),
                "Remove suspend; to have no workers in the group, write 0 for replicas, \
                 minReplicas and maxReplicas.",
            );
            findings.push(finding.valued("true").mended_by_removal());
        }
    }
}
