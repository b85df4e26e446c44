//! RF502: more workers in a group than a policy allows.

use super::extent::{Count, allowance};
use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF502
pub static RULE: Rule = Rule {
    id: RuleId(502),
    name: "workers-per-group",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More workers in a group than a RayPolicy allows",
    page: RulePage(include_str!("workers_per_group.md")),
    why: "The cluster's admins limit how large a worker group may become.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let limit = subject.settings.limits.workers_per_group.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    for group in &cluster.workers {
        let count = Count::of(cluster, group);
        let shown = match count {
            Count::AtMost(count) if count <= limit.most => continue,
            Count::AtMost(count) => format!("{count} workers"),
            Count::Unbounded => "any number of workers".to_owned(),
        };
        let problem = format!(
            "the group may come to {shown}, and {}",
            allowance(limit, &limit.most.to_string())
        );
        let hosts = group
            .integer("numOfHosts")
            .filter(|hosts| *hosts > 0)
            .unwrap_or(1);
        let key = if cluster.autoscaling() {
            "maxReplicas"
        } else {
            "replicas"
        };
        // The limit counts pods, and a replica has `numOfHosts` of them.
        let fix = format!("Write {key}: {} or less.", limit.most.div_euclid(hosts));
        findings.add(
            RULE.finding(group.path().key(key), problem, fix)
                .amounting("workers", count.amount())
                .valued(shown),
        );
    }
}
