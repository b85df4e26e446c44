//! RF213: a worker group that may grow without end.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(213),
    name: "max-unbounded",
    mode: OwnMode::Always(Mode::Warn),
    summary: "No `maxReplicas`: the group may grow without limit",
    page: include_str!("max_unbounded.md"),
    why: "One job that asks for too much can fill all nodes of the Kubernetes cluster, and make a \
          cluster autoscaler buy more.",
    cel: Cel::Covered(&[Check {
        each: Each::Worker,
        faults: r#"s.auto && g.spec.?maxReplicas.orValue(2147483647) == 2147483647 ? ['.maxReplicas sets no limit'] : []"#,
        fix: "Write how many workers the group may have at most.",
    }]),
    check,
};

/// The value that the API server fills in.
const UNBOUNDED: i64 = i32::MAX as i64;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let cluster = subject.autoscaled().into_iter();
    for group in cluster.flat_map(|cluster| &cluster.workers) {
        // Ray takes what the API server fills in for the limit of the group (`_node_type_from_group_spec`).
        let problem = match group.spec.get("maxReplicas") {
            None | Some(Json::Null) => "is absent, so there is no limit",
            Some(max) if max.as_i64() == Some(UNBOUNDED) => {
                "2147483647, the value if none was written, is not a limit"
            }
            Some(_) => continue,
        };
        // Without a value: absent and filled in by the API server are the same fault.
        findings.push(RULE.finding(
            group.path().key("maxReplicas"),
            problem,
            "Write how many workers the group may have at most, for example maxReplicas: 10.",
        ));
    }
}
