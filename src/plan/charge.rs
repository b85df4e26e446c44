//! What budgets are charged for a cluster: what its pods hold, and what it was asked for or a plan
//! asks for besides.

use std::collections::HashMap;

use crate::budget::amounts::BudgetAmounts;
use crate::plan::growth::container::ContainerAmounts;
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::outcome::plan::{Plan, PodResize};
use crate::plan::packing::allowance::{asked, cost, gpus};
use crate::quantity::Quantity;
use crate::snapshot::OwnPods;
use crate::snapshot::amounts::Amounts;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::history::{History, InstanceStatus};
use crate::snapshot::pod::{Pod, PodRole};

/// What a cluster is charged now. A pod is charged as the largest of what its spec asks for, what
/// was allocated to it and what it has, until it has ended; a replica that was asked for and has no
/// pod yet, as its pod template asks; so is a launch that was decided on and not asked for yet.
pub(crate) fn charge(config: &ClusterConfig, own: &[Pod<'_>], history: &History) -> BudgetAmounts {
    let group = |pod: &Pod<'_>| config.groups.get(config.number(pod.group)?);
    let held = own
        .iter()
        .filter(|pod| !pod.ended)
        .map(|pod| BudgetAmounts {
            gpus: group(pod).map_or(0, gpus),
            ..asked(pod.requests())
        });
    let mut there = config.groups.map(|_| 0_u64);
    for pod in own {
        let counts = pod.role == PodRole::Worker && !pod.deleting;
        let counts = counts && !config.is_listed(pod.group, pod.name);
        let number = config.number(pod.group).filter(|_| counts);
        if let Some(there) = number.and_then(|number| there.get_mut(number)) {
            *there += 1;
        }
    }
    let workers = config.groups.iter().zip(there);
    let workers = workers.filter(|(group, _)| !group.is_head);
    let awaited = workers.map(|(group, there)| {
        let replicas = group.replicas.unwrap_or(0).max(group.min_replicas);
        let replicas = replicas.clamp(0, group.max_replicas.max(0));
        cost(group).times(group.nodes(replicas).saturating_sub(there))
    });
    let queued = history.instances.iter();
    let queued = queued.filter(|launch| launch.status == InstanceStatus::Queued);
    let queued = queued.filter_map(|launch| {
        let group = config.groups.get(config.number(&launch.group)?)?;
        Some(cost(group).times(launch.count))
    });
    held.chain(awaited)
        .chain(queued)
        .fold(BudgetAmounts::default(), BudgetAmounts::plus)
}

/// What a cluster is charged as its objects are, without pods that are being deleted; and what of that
/// it has without being asked: the head and the minima. For a pod that has ended KubeRay makes another
/// one.
pub fn charged(cluster: &ClusterObject, own: &OwnPods) -> (BudgetAmounts, BudgetAmounts) {
    let mut config = ClusterConfig::of(cluster);
    let history = History::default();
    let stays = |pod: &Pod<'_>| !pod.deleting && !pod.ended;
    let all: Vec<Pod<'_>> = own.iter().filter(stays).collect();
    let now = charge(&config, &all, &history);
    for group in config.groups.iter_mut() {
        group.replicas = None;
    }
    let head: Vec<Pod<'_>> = own
        .iter()
        .filter(stays)
        .filter(|pod| pod.role == PodRole::Head)
        .collect();
    (now, charge(&config, &head, &history))
}

/// What a pod's ray container is charged: the larger of what its spec asks for and what it was given.
pub(crate) fn charged_size(pod: &Pod<'_>) -> BudgetAmounts {
    let container = ContainerAmounts::of(pod);
    let spec = container.limits.or(container.requests);
    asked(spec.max(container.given_limits.or(container.given_requests)))
}

/// What a plan adds to the charge: new nodes, each for what `cost` says, and pods that grow.
pub(crate) fn added(
    config: &ClusterConfig,
    own: &[Pod<'_>],
    plan: &Plan,
    cost: impl Fn(&GroupConfig) -> BudgetAmounts,
) -> BudgetAmounts {
    let launches = plan.groups.iter().filter_map(|group| {
        let config = config.groups.get(config.number(&group.name)?)?;
        // A launch is rounded up to whole replicas.
        let nodes = group.launch.next_multiple_of(config.hosts.max(1));
        Some(cost(config).times(nodes))
    });
    let pods: HashMap<&str, &Pod<'_>> = own.iter().map(|pod| (pod.name, pod)).collect();
    // What the pod was asked to become before is charged already.
    let grown = |resize: &PodResize| {
        let now = charged_size(pods.get(resize.pod.as_str())?);
        let then = Amounts::new(
            Quantity::from_milli(resize.cpu_milli),
            Quantity::from_units(resize.memory_bytes),
        );
        Some(asked(then).minus(now))
    };
    launches
        .chain(plan.resizes.iter().filter_map(grown))
        .fold(BudgetAmounts::default(), BudgetAmounts::plus)
}
