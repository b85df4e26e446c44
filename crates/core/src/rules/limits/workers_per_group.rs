//! RF502: more workers in a group than a policy allows.

use super::extent::{UNLIMITED, allowance, most_pods};
use crate::rules::prelude::*;
use crate::rules::shared::hosts;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(502),
    name: "workers-per-group",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More workers in a group than a RayPolicy allows",
    page: include_str!("workers_per_group.md"),
    why: "The cluster's admins limit how large a worker group may become.",
    cel: Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let limit = subject.settings.limits.max_workers_per_group.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    for group in &cluster.workers {
        let count = most_pods(cluster, group);
        let shown = match count {
            Some(count) if count <= limit.most => continue,
            Some(count) => format!("{count} workers"),
            None => "any number of workers".to_owned(),
        };
        let problem = format!(
            "the group may come to {shown}, and {}",
            allowance(limit, &limit.most.to_string())
        );
        let key = if cluster.autoscaling() {
            "maxReplicas"
        } else {
            "replicas"
        };
        // The limit counts pods, and a replica has `numOfHosts` of them.
        let most = limit.most.div_euclid(hosts(group));
        let fix = format!("Write {key}: {most} or less.");
        let finding = RULE.finding(group.path().key(key), problem, fix);
        let amount = count.map_or(UNLIMITED, Quantity::from_units);
        let finding = finding.amounting("workers", amount).valued(shown);
        findings.push(finding.mended_by(most));
    }
}
