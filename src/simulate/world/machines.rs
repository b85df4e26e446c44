//! Machines that the clusters of one world share: Kubernetes nodes with the pods on them, and quotas.

use std::collections::BTreeMap;

use super::objects::{SimulatedNode, SimulatedPod, fits, left};
use crate::ray::Fields;
use crate::ray::resource::Amounts;
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
    pub(super) present: Vec<BTreeMap<String, usize>>,
    /// Whether the node autoscaler will look anyway.
    pub(super) is_scanning: bool,
    /// The node that it will empty unless that changes, and since when.
    pub(super) candidate: Option<(usize, Moment)>,
    /// The cores that the pods of a namespace may request, where there is a quota.
    pub(super) quotas: BTreeMap<String, i64>,
    pub(super) notices: Vec<(usize, Notice)>,
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

    /// Another cluster has pods here from now on. Returns its number.
    pub(super) fn join(&mut self) -> usize {
        self.present.push(BTreeMap::new());
        self.present.len() - 1
    }

    /// The number of clusters that have pods here.
    pub fn clusters(&self) -> usize {
        self.present.len()
    }

    /// Takes what is to be told to clusters, with their numbers.
    pub fn take_notices(&mut self) -> Vec<(usize, Notice)> {
        std::mem::take(&mut self.notices)
    }

    /// The pods that exist, of all clusters.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.present.iter().flat_map(|of| of.values().copied())
    }

    /// Whether any pod waits for a node, or will.
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

    /// Whether pods of a template may be on the nodes of each pool.
    pub(super) fn admitting(&self, placement: &Fields) -> Vec<bool> {
        let pools = self.pools.iter();
        pools.map(|pool| pool.admits(placement)).collect()
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

    /// The free amounts of a node, as the scheduler counts: CPU, memory and GPUs.
    pub fn room(&self, node: usize) -> (Amounts, i64) {
        let pool = &self.pools[self.nodes[node].pool];
        let free = left(pool.allocatable, self.nodes[node].filled);
        self.pods_on(node)
            .fold((free, pool.gpus), |(free, gpus), pod| {
                (
                    left(free, self.pods[pod].requests()),
                    gpus - self.pods[pod].gpus,
                )
            })
    }

    /// The node with the most room that holds the pod, the first of equal ones. (`LeastAllocated`,
    /// the scheduler's default.)
    pub(super) fn best_node(&self, pod: usize) -> Option<usize> {
        let (wanted, gpus) = (self.pods[pod].requests(), self.pods[pod].gpus);
        let mut best: Option<(Amounts, usize)> = None;
        for (number, node) in self.nodes.iter().enumerate() {
            if !node.takes_pods() || !self.pods[pod].is_admitted(node.pool) {
                continue;
            }
            let (free, free_gpus) = self.room(number);
            if !fits(wanted, free) || gpus > free_gpus {
                continue;
            }
            if best.is_none_or(|(most, _)| free.cpu > most.cpu) {
                best = Some((free, number));
            }
        }
        best.map(|(_, number)| number)
    }

    /// Puts pods that wait on the nodes that are there or on their way. Returns the pools of as many more
    /// as the rest needs.
    pub(super) fn missing_nodes(&self) -> Vec<usize> {
        let there = self.nodes.iter().enumerate();
        let mut planned: Vec<(usize, Amounts, i64)> = there
            .filter(|(_, node)| node.removed.is_none() && !node.is_closed())
            .map(|(number, node)| {
                let (free, gpus) = self.room(number);
                (node.pool, free, gpus)
            })
            .collect();
        let mut wanted = Vec::new();
        for pod in self.unbound() {
            let (needs, gpus) = (self.pods[pod].requests(), self.pods[pod].gpus);
            let holds = |(pool, free, free_gpus): &&mut (usize, Amounts, i64)| {
                fits(needs, *free) && gpus <= *free_gpus && self.pods[pod].is_admitted(*pool)
            };
            if let Some((_, free, free_gpus)) = planned.iter_mut().find(holds) {
                *free = left(*free, needs);
                *free_gpus -= gpus;
                continue;
            }
            let count = |pool: usize| {
                self.nodes_of(pool) + wanted.iter().filter(|wanted| **wanted == pool).count()
            };
            let can = self.pools.iter().enumerate().find(|(number, pool)| {
                self.pods[pod].fits_in(*number, pool)
                    && u32::try_from(count(*number)).is_ok_and(|count| count < pool.max)
            });
            if let Some((number, pool)) = can {
                planned.push((number, left(pool.allocatable, needs), pool.gpus - gpus));
                wanted.push(number);
            }
        }
        wanted
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
            is_cordoned: false,
            images: BTreeMap::new(),
            filled: Amounts::default(),
            empty_since: ready,
            changed: ready.unwrap_or(Moment::START),
            disrupted: None,
            removed: None,
        });
        number
    }

    /// A node pulls the images of a pod that it neither has nor pulls already, all at once. Returns how long it
    /// takes until it has all of them, in seconds.
    pub(super) fn pull(&mut self, node: usize, pod: usize, now: Moment) -> f64 {
        let node = &mut self.nodes[node];
        let there = now.plus(self.pools[node.pool].image_pull_s);
        let images = self.pods[pod].images();
        let ready = images.map(|image| *node.images.entry(image.to_owned()).or_insert(there));
        ready.max().map_or(0.0, |ready| ready.since(now))
    }

    /// The requests of other clusters' pods on each node.
    pub(super) fn loads_beside(&self, cluster: usize) -> NodeLoads {
        let mut loads = NodeLoads::new();
        if self.present.len() < 2 {
            return loads;
        }
        let others = self.all().map(|pod| &self.pods[pod]);
        let others = others.filter(|pod| pod.cluster != cluster);
        add_loads(&mut loads, others.map(|pod| &pod.object));
        loads
    }

    /// The cores that the pods of a namespace may request, and those that they do.
    pub(super) fn quota(&self, namespace: &str) -> Option<(i64, Amounts)> {
        let cores = *self.quotas.get(namespace)?;
        let pods = self.all().map(|pod| &self.pods[pod]);
        let is_counted = |pod: &&SimulatedPod| {
            // A quota does not count pods that have ended. (Kubernetes,
            // `quota/v1/evaluator/core/pods.go`, `QuotaV1Pod`.)
            !pod.has_ended() && pod.object.metadata.namespace.as_deref() == Some(namespace)
        };
        let pods = pods.filter(is_counted);
        let used = pods.fold(Amounts::default(), |sum, pod| sum.plus(pod.wanted()));
        Some((cores, used))
    }
}
