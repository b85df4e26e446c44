//! RF501: more workers in a cluster than a policy allows.

use super::extent::{UNLIMITED, allowance, most_pods};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(501),
    name: "workers-per-cluster",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More workers in a cluster than a RayPolicy allows",
    page: include_str!("workers_per_cluster.md"),
    why: "The cluster's admins limit how large a Ray cluster may become.",
    cel: Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let limit = subject.settings.limits.max_workers_per_cluster.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    let mut workers = cluster.workers.iter();
    // One group without a maximum makes the whole cluster unlimited.
    let count = workers.try_fold(0_i64, |sum, group| {
        Some(sum.saturating_add(most_pods(cluster, group)?))
    });
    let shown = match count {
        Some(count) if count <= limit.most => return,
        Some(count) => format!("{count} workers together"),
        None => "any number of workers, because a group has no maxReplicas".to_owned(),
    };
    let most = limit.most.to_string();
    let allowance = allowance(limit, &most);
    let finding = RULE.finding(
        cluster.path().key("workerGroupSpecs"),
        format!("the groups may grow to {shown}, and {allowance}"),
        format!("Lower maxReplicas of the groups so that they have {most} together."),
    );
    let amount = count.map_or(UNLIMITED, Quantity::from_units);
    findings.push(finding.amounting("workers", amount).valued(shown));
}
