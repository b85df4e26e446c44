//! Groups that cannot be served now: what their pods, their spec and KubeRay say about it.
//!
//! Ray's autoscaler only sees that a pod has not become a Ray node, and waits for an hour. Here the
//! reason is read from the objects, so that the demand goes to another group within seconds.

use std::collections::HashMap;

use crate::plan::list::ByGroup;
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::outcome::block_reason::BlockReason;
use crate::snapshot::Snapshot;
use crate::snapshot::pod::{Pod, PodRole};

/// For how many seconds a pod may have scheduling gates: where Kueue has quota left, it removes its
/// gate within a second.
const GATED_S: f64 = 2.0;

/// Why a container's image is not there. (Kubernetes, `pkg/kubelet/images/types.go`.)
const NO_IMAGE: [&str; 5] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
];

/// Why a container cannot be made. (Kubernetes, `pkg/kubelet/kuberuntime/kuberuntime_container.go`.)
const NOT_MADE: [&str; 3] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// What the objects say.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    /// The pods that do not start, by name.
    pub(crate) pods: HashMap<&'a str, BlockReason>,
    /// The groups that cannot be served.
    pub(crate) groups: ByGroup<Option<BlockReason>>,
}

impl<'a> Evidence<'a> {
    /// Reads what the objects say. A pod that no Kubernetes node has room for counts after
    /// `unschedulable_s` seconds; without that number, nothing is read and every group can be
    /// served, as Ray has it.
    pub(crate) fn of(
        snapshot: &Snapshot,
        own: &'a [Pod<'a>],
        config: &ClusterConfig,
        unschedulable_s: Option<f64>,
    ) -> Self {
        let mut found = Self {
            pods: HashMap::new(),
            groups: config.groups.map(|_| None),
        };
        if let Some(unschedulable_s) = unschedulable_s {
            let now = snapshot.seconds().unwrap_or_default();
            found.groups = config.groups.map(gated);
            let alive = snapshot.gcs.live();
            let starting = own.iter().filter(|pod| {
                pod.role == PodRole::Worker
                    && !pod.deleting
                    && !pod.ended
                    && !alive.contains_key(pod.name)
                    && !config.is_listed(pod.group, pod.name)
            });
            for pod in starting {
                found.add(pod, config, (unschedulable_s, now));
            }
            if snapshot.ray_cluster.fails_to_create {
                refused(config, own, &mut found.groups);
            }
        }
        found
    }

    /// Adds a pod, if it does not start. A pod that no Kubernetes node has room for counts after
    /// `unschedulable_s` seconds, in which a node autoscaler may make one.
    fn add(&mut self, pod: &Pod<'a>, config: &ClusterConfig, (unschedulable_s, now): (f64, f64)) {
        let Some(reason) = of_pod(pod, unschedulable_s, now) else {
            return;
        };
        let group = config.number(pod.group);
        if let Some(group) = group.and_then(|group| self.groups.get_mut(group)) {
            // The first pod by name stands for all, so that the same is said in every round.
            let is_first = |known: &BlockReason| known.pod().is_some_and(|known| pod.name < known);
            if group.as_ref().is_none_or(is_first) {
                *group = Some(reason.clone());
            }
        }
        self.pods.insert(pod.name, reason);
    }
}

fn gated(group: &GroupConfig) -> Option<BlockReason> {
    let gate = group.scale_gates.first()?;
    (!group.is_head).then(|| BlockReason::ScaleGate(gate.clone()))
}

/// KubeRay could not make a pod. It makes the pods of one group after the other and stops at the
/// first that is refused, so that is one of the first group that lacks any. (KubeRay,
/// `raycluster_controller.go`, `reconcilePods`.)
fn refused(config: &ClusterConfig, own: &[Pod<'_>], groups: &mut ByGroup<Option<BlockReason>>) {
    let mut there: HashMap<&str, u64> = HashMap::new();
    for pod in own.iter().filter(|pod| pod.role == PodRole::Worker) {
        *there.entry(pod.group).or_default() += 1;
    }
    let lacks = |group: &GroupConfig| {
        let asked = group.replicas.unwrap_or(0).max(group.min_replicas);
        let there = there.get(group.name.as_str()).copied().unwrap_or(0);
        !group.is_head && !group.suspended && there < group.nodes(asked)
    };
    let first = config.groups.enumerate().find(|(_, group)| lacks(group));
    if let Some(group) = first.and_then(|(number, _)| groups.get_mut(number)) {
        // What a pod of the group says about itself is more exact, and stays.
        group.get_or_insert(BlockReason::NotCreated);
    }
}

fn of_pod(pod: &Pod<'_>, unschedulable_s: f64, now: f64) -> Option<BlockReason> {
    let age = pod.created().map_or(0.0, |created| now - created);
    let name = pod.name.to_owned();
    if let Some(gate) = pod.object.spec.scheduling_gates.first() {
        let gate = gate.name.clone();
        return (age >= GATED_S).then_some(BlockReason::SchedulingGate { pod: name, gate });
    }
    if pod.node.is_none() {
        let scheduled = pod.condition("PodScheduled")?;
        let is_refused =
            !scheduled.is_true() && scheduled.reason.as_deref() == Some("Unschedulable");
        // The scheduler is about to make room for a pod that it has nominated a node for.
        let is_expected = pod.object.status.nominated_node_name.as_deref();
        let is_expected = is_expected.is_some_and(|node| !node.is_empty());
        return (is_refused && !is_expected && age >= unschedulable_s)
            .then_some(BlockReason::Unschedulable { pod: name });
    }
    waiting(pod).find_map(|why| of_container(&name, why))
}

/// Why the containers of a pod wait.
fn waiting<'a>(pod: &Pod<'a>) -> impl Iterator<Item = &'a str> {
    let status = &pod.object.status;
    // The others wait until all init containers have ended, so one of these that fails is the
    // reason.
    let statuses = status.init_container_statuses.iter();
    let statuses = statuses.chain(&status.container_statuses);
    statuses.filter_map(|container| container.state.waiting.as_ref()?.reason.as_deref())
}

fn of_container(pod: &str, why: &str) -> Option<BlockReason> {
    let pod = pod.to_owned();
    if why == "CrashLoopBackOff" {
        Some(BlockReason::Crashes { pod })
    } else if NO_IMAGE.contains(&why) {
        Some(BlockReason::NoImage { pod })
    } else if NOT_MADE.contains(&why) {
        Some(BlockReason::NoContainer { pod })
    } else {
        None
    }
}
