//! RF504: more GPUs in a cluster than a policy allows.

use super::extent::{Count, UNLIMITED, allowance};
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::pod_size::devices;
use crate::ray::{Cluster, Group, node_resources};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF504
pub static RULE: Rule = Rule {
    id: RuleId(504),
    name: "gpus-per-cluster",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More GPUs in a cluster, with all its workers, than a RayPolicy allows",
    page: RulePage(include_str!("gpus_per_cluster.md")),
    why: "The cluster's admins limit how many GPUs a Ray cluster may use.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let limit = subject.settings.limits.gpus_per_cluster.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    let Some(shown) = beyond(cluster, limit.most) else {
        return;
    };
    let problem = format!(
        "the cluster may grow to {shown}, and {}",
        allowance(limit, &limit.most.to_string())
    );
    let fix = format!(
        "Lower maxReplicas of the groups with GPUs so that they have {} GPUs together.",
        limit.most
    );
    let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
    let finding = finding.amounting("gpu", amount(cluster));
    findings.add(finding.valued(shown));
}

/// The number of GPUs that a cluster may grow to, in words, if it is more than `most`.
pub(super) fn beyond(cluster: &Cluster<'_>, most: i64) -> Option<String> {
    match sum(cluster) {
        Ok(sum) => (sum > most).then(|| format!("{sum} GPUs")),
        Err(group) => Some(format!(
            "any number of GPUs, because {} has no maxReplicas",
            group.title()
        )),
    }
}

/// The GPUs of a cluster with all its workers, as an amount, by which updates are compared.
pub(super) fn amount(cluster: &Cluster<'_>) -> Quantity {
    sum(cluster).map_or(UNLIMITED, Quantity::from_units)
}

/// The GPUs of a cluster with all its workers.
///
/// # Errors
///
/// A group with GPUs has no `maxReplicas`: the last such group.
pub(super) fn sum<'c>(cluster: &'c Cluster<'_>) -> Result<i64, &'c Group<'c>> {
    let (mut sum, mut unbounded) = (0_i64, None);
    for group in cluster.groups() {
        match (gpus(cluster, group), Count::of(cluster, group)) {
            // A group without GPUs stays within every limit, so it may do without `maxReplicas`.
            (0, _) => {}
            (_, Count::Unbounded) => unbounded = Some(group),
            (gpus, Count::AtMost(count)) => sum = sum.saturating_add(gpus.saturating_mul(count)),
        }
    }
    unbounded.map_or(Ok(sum), Err)
}

/// The GPUs of a pod: the larger of what Ray counts and what Kubernetes allocates. Other rules
/// report what Ray cannot read.
fn gpus(cluster: &Cluster<'_>, group: &Group<'_>) -> i64 {
    let derived = node_resources::gpu(group).ok().flatten();
    let by_ray = derived.map_or(0, |gpus| gpus.max(0));
    let handed_out = i64::try_from(devices::gpus(cluster, group)).unwrap_or(i64::MAX);
    by_ray.max(handed_out)
}
