//! Pods and Kubernetes nodes of a world.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::simulate::moment::Moment;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::pod_condition::PodCondition;
use crate::snapshot::pod_object::{PodObject, PodSpec};
use crate::snapshot::requests::requests;
use crate::snapshot::{KubeNode, NodeLoads};

/// The reason for which KubeRay's operator deletes a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionCause {
    /// Its containers have ended.
    Ended,
    /// Its name is in `workersToDelete`.
    Listed,
    /// Another pod of its replica has ended, is listed or is missing.
    Replica,
}

/// The objects as watchers have them.
#[derive(Debug, Clone, Default)]
pub struct WorldView {
    /// The RayCluster.
    pub cluster: Rc<ClusterObject>,
    /// Its pods.
    pub pods: Rc<Vec<PodObject>>,
    /// The Kubernetes nodes; `None` where there is room for everything.
    pub nodes: Option<Rc<Vec<KubeNode>>>,
    /// The requests of other clusters' pods on each of them.
    pub loads: Rc<NodeLoads>,
    /// The number of this view; it grows with each change.
    pub version: u64,
}

/// A pod, with what its object does not say.
#[derive(Debug, Clone, Default)]
pub struct SimulatedPod {
    /// The number of its cluster.
    pub cluster: usize,
    /// The pod as the API server has it.
    pub object: PodObject,
    /// The GPUs that it takes of its node.
    pub gpus: i64,
    /// The pools whose nodes may hold it by their labels and taints: a bool for each.
    pub admitted: Vec<bool>,
    /// The number of its node, once it is bound.
    pub node: Option<usize>,
    /// The time at which it was bound.
    pub bound: Option<Moment>,
    /// Seconds from then until its node had the pod's images.
    pub pulled_s: f64,
    /// True while KubeRay's operator, which has deleted it, waits for its end.
    pub is_awaited: bool,
    /// True for the head.
    pub is_head: bool,
    /// True once it is gone.
    pub is_gone: bool,
}

/// The room on a node, as the scheduler counts: CPU and memory, and GPUs.
pub type Room = (Amounts, i64);

impl SimulatedPod {
    /// The name.
    pub fn name(&self) -> &str {
        &self.object.metadata.name
    }

    /// The name of its group.
    pub fn group(&self) -> &str {
        let labels = &self.object.metadata.labels;
        labels.group.as_deref().unwrap_or_default()
    }

    /// Checks whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// The phase.
    pub fn phase(&self) -> &str {
        self.object.status.phase.as_deref().unwrap_or_default()
    }

    /// Checks whether the scheduler leaves it alone until somebody removes its gates.
    pub fn is_gated(&self) -> bool {
        !self.object.spec.scheduling_gates.is_empty()
    }

    /// Checks whether a node of a pool with so much room holds it.
    pub fn fits_in(&self, pool: usize, (free, gpus): Room) -> bool {
        let is_admitted = self.admitted.get(pool).copied().unwrap_or(true);
        is_admitted && self.gpus <= gpus && fits(self.requests(), free)
    }

    /// The room that is left beside it.
    pub fn leaves(&self, (free, gpus): Room) -> Room {
        (remainder(free, self.requests()), gpus - self.gpus)
    }

    /// Takes its room from the first of these nodes that holds it, each of which has its pool; false if none does.
    pub fn takes_room(&self, nodes: &mut [(usize, Room)]) -> bool {
        let mut nodes = nodes.iter_mut();
        let Some((_, room)) = nodes.find(|(pool, room)| self.fits_in(*pool, *room)) else {
            return false;
        };
        *room = self.leaves(*room);
        true
    }

    /// Checks whether its containers have ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    /// The requests that count for it on its node, as the scheduler adds them up.
    pub fn requests(&self) -> Amounts {
        requests(&self.object)
    }

    /// The resources that the kubelet has allocated to it.
    pub fn allocated(&self) -> Amounts {
        let status = &self.object.status;
        let statuses = status.container_statuses.iter();
        let containers = statuses
            .filter_map(|status| status.allocated_resources)
            .fold(Amounts::default(), Amounts::plus);
        // Resources of the pod as a whole come first.
        status
            .allocated_resources
            .unwrap_or_default()
            .or(containers)
    }

    /// The requests in its spec: of the pod as a whole, or else of its containers.
    pub fn spec_requests(&self) -> Amounts {
        spec_requests(&self.object.spec)
    }

    /// The size in its spec: the limits of its containers, or their requests where they have no limits, as
    /// thousandths of cores and as bytes.
    pub fn size(&self) -> [i64; 2] {
        let containers = self.object.spec.containers.iter();
        let size = containers
            .map(|container| container.resources.limits.or(container.resources.requests))
            .fold(Amounts::default(), Amounts::plus);
        let whole = |amount: i128| i64::try_from(amount).unwrap_or(i64::MAX);
        [
            whole(size.cpu.unwrap_or_default().ceil_milli()),
            whole(size.memory.unwrap_or_default().ceil_units()),
        ]
    }

    /// The limits that its containers have been given; requests where there are no limits.
    pub fn limits(&self) -> Amounts {
        let statuses = self.object.status.container_statuses.iter();
        statuses
            .filter_map(|status| status.resources)
            .map(|given| given.limits.or(given.requests))
            .fold(Amounts::default(), Amounts::plus)
    }

    /// The amounts that are paid for it, in cores, bytes and GPUs, as long as it has a Kubernetes node and
    /// has not ended. The head is not counted.
    pub fn paid(&self) -> Option<(f64, f64, f64)> {
        if self.is_head || self.bound.is_none() || self.has_ended() {
            return None;
        }
        // A pod that grows is paid for from its allocation on, and one that shrinks until it has
        // given back. Of one with resources as a whole the request is paid for: its limit is only what
        // it could come to.
        let whole = self.object.status.resources.unwrap_or_default();
        let size = whole.requests.or(self.limits()).max(self.allocated());
        let cpus = size.cpu.map_or(0.0, |cpu| cpu.ceil_milli() as f64 / 1000.0);
        let memory = size.memory.map_or(0.0, |memory| memory.ceil_units() as f64);
        Some((cpus, memory, self.gpus as f64))
    }

    /// The bytes of memory that its containers have been given, together no more than the pod as a whole.
    pub fn memory(&self) -> i64 {
        let memory = self.limits().memory.unwrap_or_default();
        let whole = self.object.status.resources.unwrap_or_default();
        let memory = whole.limits.memory.map_or(memory, |most| most.min(memory));
        i64::try_from(memory.ceil_units()).unwrap_or(i64::MAX)
    }

    /// The kubelet allocates what the spec asks for.
    pub fn allocate(&mut self) {
        let containers = self.object.spec.containers.iter();
        for (container, status) in containers.zip(&mut self.object.status.container_statuses) {
            let resources = container.resources;
            status.allocated_resources = Some(resources.requests.or(resources.limits));
        }
        let whole = self.object.spec.resources;
        self.object.status.allocated_resources = (!whole.is_empty()).then(|| self.spec_requests());
    }

    /// The containers get what the spec asks for.
    pub fn actuate(&mut self) {
        let containers = self.object.spec.containers.iter();
        for (container, status) in containers.zip(&mut self.object.status.container_statuses) {
            status.resources = Some(container.resources);
        }
        let whole = self.object.spec.resources;
        self.object.status.resources = (!whole.is_empty()).then_some(whole);
        // The kubelet removes the conditions of a resize when it is done, and sets none of them to
        // False.
        self.object.status.conditions.clear();
    }

    /// Checks whether the containers, and the pod as a whole, have what the spec asks for.
    pub fn is_actuated(&self) -> bool {
        let containers = self.object.spec.containers.iter();
        let mut pairs = containers.zip(&self.object.status.container_statuses);
        let whole = self.object.status.resources.unwrap_or_default();
        whole == self.object.spec.resources
            && pairs.all(|(container, status)| status.resources == Some(container.resources))
    }

    /// Replaces the conditions that tell of the pod's resize.
    pub fn set_resize(&mut self, kind: &str, reason: Option<&str>, message: Option<String>) {
        self.object.status.conditions = vec![PodCondition {
            kind: kind.to_owned(),
            status: "True".to_owned(),
            reason: reason.map(str::to_owned),
            message,
            observed_generation: self.object.metadata.generation,
            last_transition_time: None,
        }];
    }
}

/// The requests of a pod with this spec: of the pod as a whole, or else of its containers.
pub(super) fn spec_requests(spec: &PodSpec) -> Amounts {
    let containers = spec.containers.iter();
    let containers = containers
        .map(|container| container.resources.requests.or(container.resources.limits))
        .fold(Amounts::default(), Amounts::plus);
    spec.resources.requests.or(containers)
}

/// Says that a pod is not bound, and why.
pub(super) fn unscheduled(reason: &str) -> PodCondition {
    PodCondition {
        kind: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some(reason.to_owned()),
        ..PodCondition::default()
    }
}

/// A Kubernetes node.
#[derive(Debug, Clone, Default)]
pub struct SimulatedNode {
    /// The name.
    pub name: String,
    /// The number of its pool.
    pub pool: usize,
    /// True once pods can be bound to it.
    pub is_ready: bool,
    /// True while it is cordoned, so that no pod is bound to it.
    pub is_cordoned: bool,
    /// The images that it has or pulls, and from when on it has them.
    pub images: BTreeMap<String, Moment>,
    /// The amounts that pods of others take.
    pub filled: Amounts,
    /// The time since which it has had no pod.
    pub empty_since: Option<Moment>,
    /// The time since which no pod has come to it or left it.
    pub changed: Moment,
    /// The time at which the node autoscaler began to empty it.
    pub disrupted: Option<Moment>,
    /// The time of its removal.
    pub removed: Option<Moment>,
}

impl SimulatedNode {
    /// Checks whether pods can be bound to it, once it is ready.
    pub fn is_open(&self) -> bool {
        self.removed.is_none() && !self.is_cordoned && self.disrupted.is_none()
    }
}

/// Checks that amounts are nowhere above others. An absent amount is 0.
pub fn fits(amounts: Amounts, free: Amounts) -> bool {
    amounts.cpu.unwrap_or_default() <= free.cpu.unwrap_or_default()
        && amounts.memory.unwrap_or_default() <= free.memory.unwrap_or_default()
}

/// The amounts that remain; nothing goes below 0.
pub fn remainder(free: Amounts, taken: Amounts) -> Amounts {
    let less = |free: Option<Quantity>, taken: Option<Quantity>| {
        let rest = free
            .unwrap_or_default()
            .checked_sub(taken.unwrap_or_default());
        rest.filter(|rest| !rest.is_negative()).unwrap_or_default()
    };
    Amounts::new(less(free.cpu, taken.cpu), less(free.memory, taken.memory))
}
