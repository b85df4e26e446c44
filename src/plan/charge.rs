//! What budgets are charged for a cluster: what its pods hold, and what it was asked for or a plan
//! asks for besides.

use crate::budget::amounts::BudgetAmounts;
use crate::hash::{HashMap, HashSet};
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
/// was allocated to it and what it has, until it has ended; a replica that was requested and has no
/// pod yet, as its pod template asks; so is a launch that was decided on and not requested yet.
pub(crate) fn charge(config: &ClusterConfig, own: &[Pod<'_>], history: &History) -> BudgetAmounts {
    let group = |pod: &Pod<'_>| config.groups.get(config.number(pod.group)?);
    let held = own
        .iter()
        .filter(|pod| !pod.ended)
        .map(|pod| BudgetAmounts {
            gpus: group(pod).map_or(0, gpus),
            ..asked(pod.requests())
        });
    let known: HashSet<&str> = (history.instances.iter())
        .filter_map(|instance| instance.pod.as_deref())
        .collect();
    let mut nodes = config.groups.map(|_| Nodes::default());
    for pod in own {
        let counts = pod.role == PodRole::Worker && !pod.deleting;
        let counts = counts && !config.is_listed(pod.group, pod.name);
        let number = config.number(pod.group).filter(|_| counts);
        let Some(nodes) = number.and_then(|number| nodes.get_mut(number)) else {
            continue;
        };
        // For one that has ended, and is not listed, KubeRay makes another one without being asked.
        if !pod.ended {
            nodes.there += 1;
            nodes.unknown += u64::from(!known.contains(pod.name));
        }
    }
    for launch in history.instances.iter().filter(|one| one.pod.is_none()) {
        let number = config.number(&launch.group);
        let Some(nodes) = number.and_then(|number| nodes.get_mut(number)) else {
            continue;
        };
        let sum = match launch.status {
            InstanceStatus::Requested => &mut nodes.requested,
            InstanceStatus::Queued => &mut nodes.queued,
            _ => continue,
        };
        *sum = sum.saturating_add(launch.count);
    }
    let workers = config.groups.iter().zip(nodes);
    let workers = workers.filter(|(group, _)| !group.is_head);
    let to_come = workers.map(|(group, nodes)| cost(group).times(nodes.to_come(group)));
    held.chain(to_come)
        .fold(BudgetAmounts::default(), BudgetAmounts::plus)
}

/// The nodes of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Nodes {
    /// Pods that are there to stay.
    there: u64,
    /// Those of them that are not remembered: each may be one that was requested.
    unknown: u64,
    /// Nodes that were requested, as is remembered.
    requested: u64,
    /// Nodes that were decided on and not requested yet.
    queued: u64,
}

impl Nodes {
    /// How many pods are still to come, with those that are not requested yet. These are asked for in whole
    /// replicas.
    fn to_come(self, group: &GroupConfig) -> u64 {
        let awaited = self.awaited(group);
        if self.queued == 0 {
            return awaited;
        }
        let all = self.there.saturating_add(awaited);
        let all = all.saturating_add(self.queued);
        let whole = all.div_ceil(group.hosts.max(1));
        whole
            .saturating_mul(group.hosts.max(1))
            .saturating_sub(self.there)
    }

    /// How many pods are still to come.
    fn awaited(self, group: &GroupConfig) -> u64 {
        let most = group.max_replicas.max(0);
        let replicas = group.replicas.unwrap_or(0).max(group.min_replicas);
        let by_replicas = group
            .nodes(replicas.clamp(0, most))
            .saturating_sub(self.there);
        // Somebody who has lowered `replicas` since has not ended the request: the planner asks for
        // the pods again, as far as the group may have them.
        let by_request = self.requested.saturating_sub(self.unknown);
        by_replicas.max(by_request.min(group.nodes(most).saturating_sub(self.there)))
    }
}

/// What a cluster is charged as its objects are, where nothing else is known of it.
pub fn held(cluster: &ClusterObject, own: &OwnPods) -> BudgetAmounts {
    let all: Vec<Pod<'_>> = own.iter().collect();
    charge(&ClusterConfig::of(cluster), &all, &History::default())
}

/// What a cluster is charged as its objects are, without pods that are being deleted or are listed
/// for it; and how much of that it has without being asked: the head and the minima.
pub fn charged(cluster: &ClusterObject, own: &OwnPods) -> (BudgetAmounts, BudgetAmounts) {
    let mut config = ClusterConfig::of(cluster);
    let history = History::default();
    let is_listed = |pod: &Pod<'_>| config.is_listed(pod.group, pod.name);
    // KubeRay makes another pod for one that has ended.
    let stays = |pod: &Pod<'_>| !pod.deleting && !pod.ended && !is_listed(pod);
    let all: Vec<Pod<'_>> = own.iter().filter(stays).collect();
    let head: Vec<Pod<'_>> = own
        .iter()
        .filter(stays)
        .filter(|pod| pod.role == PodRole::Head)
        .collect();
    let now = charge(&config, &all, &history);
    for group in config.groups.iter_mut() {
        // KubeRay makes the minima whatever `replicas` says: without it, they alone are to come.
        group.replicas = None;
    }
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
        // `minus` ends at zero: a pod that is to shrink holds what it has until it has shrunk.
        Some(asked(then).minus(now))
    };
    launches
        .chain(plan.resizes.iter().filter_map(grown))
        .fold(BudgetAmounts::default(), BudgetAmounts::plus)
}
