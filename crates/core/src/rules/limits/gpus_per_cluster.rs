//! RF504: more GPUs in a cluster than a policy allows.

use super::extent::{UNLIMITED, allowance, most_pods};
use crate::ray::node_resources;
use crate::ray::pod_size::devices;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(504),
    name: "gpus-per-cluster",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More GPUs in a cluster, with all its workers, than a RayPolicy allows",
    page: include_str!("gpus_per_cluster.md"),
    why: "The cluster's admins limit how many GPUs a Ray cluster may use.",
    cel: Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let limit = subject.settings.limits.max_gpus_per_cluster.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    let (mut sum, mut unbounded) = (0_i64, None);
    for group in cluster.groups() {
        // The GPUs of a pod: the larger of what Ray counts and what Kubernetes allocates. Other rules
        // report what Ray cannot read.
        let derived = node_resources::gpu(group).ok().flatten();
        let by_ray = derived.map_or(0, |gpus| gpus.max(0));
        let allocated = i64::try_from(devices::gpus(cluster, group)).unwrap_or(i64::MAX);
        match (by_ray.max(allocated), most_pods(cluster, group)) {
            // A group without GPUs stays within every limit, so it may do without `maxReplicas`.
            (0, _) => {}
            (_, None) => unbounded = Some(group),
            (gpus, Some(count)) => sum = sum.saturating_add(gpus.saturating_mul(count)),
        }
    }
    let (shown, amount) = match unbounded {
        None if sum <= limit.most => return,
        None => (format!("{sum} GPUs"), Quantity::from_units(sum)),
        Some(group) => (
            format!(
                "any number of GPUs, because {} has no maxReplicas",
                group.title()
            ),
            UNLIMITED,
        ),
    };
    let most = limit.most.to_string();
    let allowance = allowance(limit, &most);
    let finding = RULE.finding(
        cluster.path().key("workerGroupSpecs"),
        format!("the cluster may grow to {shown}, and {allowance}"),
        format!(
            "Lower maxReplicas of the groups with GPUs so that they have {most} GPUs together."
        ),
    );
    findings.push(finding.amounting("gpu", amount).valued(shown));
}
