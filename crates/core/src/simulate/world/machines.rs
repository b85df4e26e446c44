//! Machines that the clusters of one world share: Kubernetes nodes with the pods on them.

use std::collections::BTreeMap;

use super::objects::{Room, SimulatedNode, SimulatedPod, remainder};
use crate::simulate::moment::Moment;
use crate::simulate::settings::NodePool;
use crate::snapshot::NodeLoads;
use crate::snapshot::kube_node::add_loads;

/// The Kubernetes nodes of a world, and the pods of all clusters in it.
///
/// A world has them. Where several worlds share them, each has them only while something happens to it,
/// and leaves [`Notice`]s for the others.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    /// The pools that nodes are made in.
    pub pools: Vec<NodePool>,
    /// The nodes that there ever were, in the order in which they were made.
    pub nodes: Vec<SimulatedNode>,
    /// All pods that there ever were, in the order in which they were made.
    pub pods: Vec<SimulatedPod>,
    /// The pods that exist, of each cluster, by name.
    pub present: Vec<BTreeMap<String, usize>>,
    /// True while a look of the node autoscaler is queued.
    pub(super) is_scanning: bool,
    /// The node that it will empty unless that changes, and since when.
    pub(super) candidate: Option<(usize, Moment)>,
    /// The notices that clusters have not had yet, with the numbers of the clusters.
    pub notices: Vec<(usize, Notice)>,
}

/// An event of a cluster that is caused by one of another cluster. Pods are numbers in the list of all pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// There are other Kubernetes nodes.
    Nodes,
    /// Pods of others take another part of the Kubernetes nodes.
    Loads,
    /// One of its pods is bound to a node.
    Bound(usize),
    /// There is no room for one of its pods, which is new.
    Refused,
    /// There is more room on the node of one of its pods, which is to be resized.
    Room(usize),
    /// Somebody evicts one of its pods.
    Evicted(usize),
    /// The node autoscaler evicts one of its pods, because it needs the node no longer.
    Disrupted(usize),
    /// One of its pods is gone with its node.
    Gone(usize),
}

impl Machines {
    /// The nodes that pools have from the beginning.
    pub fn new(pools: &[NodePool]) -> Self {
        let mut machines = Self {
            pools: pools.to_vec(),
            ..Self::default()
        };
        for (number, pool) in pools.iter().enumerate() {
            for _ in 0..pool.min {
                machines.add_node(number, Some(Moment::START));
            }
        }
        machines
    }

    /// The pods that exist, of all clusters.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.present.iter().flat_map(|of| of.values().copied())
    }

    /// Checks whether any pod waits for a node, or will.
    pub(super) fn has_waiting(&self) -> bool {
        let mut pods = self.all().map(|pod| &self.pods[pod]);
        pods.any(|pod| pod.bound.is_none() && !pod.is_gated())
    }

    /// The pods that are to be bound, in the order in which they were made.
    pub(super) fn unbound(&self) -> Vec<usize> {
        let is_waiting = |pod: &usize| {
            let pod = &self.pods[*pod];
            pod.bound.is_none() && !pod.is_deleting() && !pod.is_gated()
        };
        // `present` is in the order of names; the queue of a scheduler is in that of time.
        let mut waiting: Vec<usize> = self.all().filter(is_waiting).collect();
        waiting.sort_unstable();
        waiting
    }

    /// The pods that take room of a node.
    pub fn pods_on(&self, node: usize) -> impl Iterator<Item = usize> {
        let on = move |pod: &usize| {
            let pod = &self.pods[*pod];
            pod.node == Some(node) && !pod.has_ended()
        };
        self.all().filter(on)
    }

    /// The pods that are bound to a node, whether or not they have ended.
    pub fn bound_to(&self, node: usize) -> Vec<usize> {
        let on = |pod: &usize| self.pods[*pod].node == Some(node);
        self.all().filter(on).collect()
    }

    /// The room that is left on a node.
    pub fn room(&self, node: usize) -> Room {
        let pool = &self.pools[self.nodes[node].pool];
        let free = remainder(pool.allocatable, self.nodes[node].filled);
        let pods = self.pods_on(node).map(|pod| &self.pods[pod]);
        pods.fold((free, pool.gpus), |room, pod| pod.leaves(room))
    }

    /// The number of nodes of a pool, with those on their way.
    pub(super) fn nodes_of(&self, pool: usize) -> usize {
        let of_pool = |node: &&SimulatedNode| node.pool == pool && node.removed.is_none();
        self.nodes.iter().filter(of_pool).count()
    }

    /// Adds a node, and returns its number; without a moment it is on its way.
    pub(super) fn add_node(&mut self, pool: usize, ready: Option<Moment>) -> usize {
        let number = self.nodes.len();
        self.nodes.push(SimulatedNode {
            name: format!("{}-{number}", self.pools[pool].name),
            pool,
            is_ready: ready.is_some(),
            empty_since: ready,
            changed: ready.unwrap_or(Moment::START),
            ..SimulatedNode::default()
        });
        number
    }

    /// The requests of other clusters' pods on each node.
    pub(super) fn loads_beside(&self, cluster: usize) -> NodeLoads {
        let mut loads = NodeLoads::new();
        let others = self.all().map(|pod| &self.pods[pod]);
        let others = others.filter(|pod| pod.cluster != cluster);
        add_loads(&mut loads, others.map(|pod| &pod.object));
        loads
    }
}
