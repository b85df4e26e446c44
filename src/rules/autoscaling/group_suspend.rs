//! RF212: a suspended worker group in a cluster that is scaled.

use serde_json::Value;

use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF212
pub static RULE: Rule = Rule {
    id: RuleId(212),
    name: "group-suspend",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`suspend: true` on a worker group with autoscaling on",
    page: RulePage(include_str!("group_suspend.md")),
    why: "The autoscaler does not know about suspended groups, so KubeRay stops reconciling the \
          whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Worker,
    mode: Mode::Enforce,
    faults: r#"s.auto && g.spec.?suspend.orValue(false) ? ['.suspend suspends the group while autoscaling is on'] : []"#,
    fix: "Remove suspend; write 0 for replicas, minReplicas and maxReplicas to have no workers.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.autoscaled().into_iter().flat_map(|c| &c.workers) {
        if group.spec.get("suspend").and_then(Value::as_bool) == Some(true) {
            findings.add(
                RULE.finding(
                    group.path().key("suspend"),
                    format!("suspends {} while autoscaling is on", group.title()),
                    "Remove suspend; to have no workers in the group, write 0 for replicas, \
                     minReplicas and maxReplicas.",
                )
                .valued("true"),
            );
        }
    }
}
