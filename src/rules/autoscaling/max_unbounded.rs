//! RF213: a worker group that may grow without end.

use serde_json::Value;

use crate::policy::Mode;
use crate::ray::Group;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF213
pub static RULE: Rule = Rule {
    id: RuleId(213),
    name: "max-unbounded",
    mode: OwnMode::Always(Mode::Warn),
    summary: "No `maxReplicas`: the group may grow without limit",
    page: RulePage(include_str!("max_unbounded.md")),
    why: "One job that asks for too much can fill all nodes of the Kubernetes cluster, and make a \
          cluster autoscaler buy more.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Worker,
    mode: Mode::Warn,
    faults: r#"s.auto && g.spec.?maxReplicas.orValue(2147483647) == 2147483647 ? ['.maxReplicas sets no limit'] : []"#,
    fix: "Write how many workers the group may have at most.",
}]);

/// What the API server fills in.
const UNBOUNDED: i64 = i32::MAX as i64;

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.autoscaled().into_iter().flat_map(|c| &c.workers) {
        match group.spec.get("maxReplicas") {
            None | Some(Value::Null) => report(group, "is absent, so there is no limit", findings),
            Some(max) if max.as_i64() == Some(UNBOUNDED) => {
                report(
                    group,
                    "2147483647, the value if none was written, is not a limit",
                    findings,
                );
            }
            Some(_) => {}
        }
    }
}

/// Without a value: absent and filled in by the API server are the same fault.
fn report(group: &Group<'_>, problem: &str, findings: &mut Findings) {
    findings.add(RULE.finding(
        group.path().key("maxReplicas"),
        problem,
        "Write how many workers the group may have at most, for example maxReplicas: 10.",
    ));
}
