//! The scheduler, and the node autoscaler beside it.

use super::state::World;
use crate::simulate::world::objects::{SimulatedNode, fits, left};
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::amounts::Amounts;

/// The interval at which the node autoscaler looks at the nodes while there is something to do.
/// (Cluster Autoscaler's `scan-interval`.)
const SCAN_S: f64 = 10.0;

impl World {
    /// Binds the pods that fit somewhere, in the order in which they were made.
    pub(super) fn schedule_pods(&mut self) {
        let mut waiting: Vec<usize> = self.present.values().copied().collect();
        waiting.retain(|pod| self.pods[*pod].bound.is_none() && !self.pods[*pod].is_deleting());
        waiting.sort_unstable();
        let mut unbound = false;
        for pod in waiting {
            if self.settings.pools.is_empty() {
                self.bind(pod, None);
            } else if let Some(node) = self.best_node(pod) {
                self.bind(pod, Some(node));
            } else {
                unbound = true;
                if self.pods[pod].refuse() {
                    self.objects_changed();
                }
            }
        }
        if unbound {
            self.scan_after(0.0);
        }
    }

    fn bind(&mut self, pod: usize, node: Option<usize>) {
        let name = node.map_or_else(|| "node".to_owned(), |node| self.nodes[node].name.clone());
        let bound = &mut self.pods[pod];
        bound.object.spec.node_name = Some(name);
        bound.node = node;
        bound.bound = Some(self.now);
        bound.object.status.conditions.clear();
        bound.allocate();
        if let Some(node) = node {
            self.nodes[node].empty_since = None;
        }
        self.after(self.settings.pod_start_s, WorldEvent::PodRuns(pod));
        self.objects_changed();
        self.count_cost();
    }

    /// The node with the most room that holds the pod, the first of equal ones. (`LeastAllocated`,
    /// the scheduler's default.)
    fn best_node(&self, pod: usize) -> Option<usize> {
        let (wanted, gpus) = (self.pods[pod].requests(), self.pods[pod].gpus);
        let mut best: Option<(Amounts, usize)> = None;
        for (number, node) in self.nodes.iter().enumerate() {
            if !node.is_ready || node.is_cordoned || node.removed.is_some() {
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

    /// What is left of a node, as the scheduler counts: CPU, memory and GPUs.
    pub(super) fn room(&self, node: usize) -> (Amounts, i64) {
        let pool = &self.settings.pools[self.nodes[node].pool];
        let free = left(pool.allocatable, self.nodes[node].filled);
        self.pods_on(node)
            .fold((free, pool.gpus), |(free, gpus), pod| {
                (
                    left(free, self.pods[pod].requests()),
                    gpus - self.pods[pod].gpus,
                )
            })
    }

    /// The pods that take room of a node.
    pub(super) fn pods_on(&self, node: usize) -> impl Iterator<Item = usize> {
        let on = move |pod: &usize| {
            let pod = &self.pods[*pod];
            pod.node == Some(node) && !pod.has_ended()
        };
        self.present.values().copied().filter(on)
    }

    /// The node autoscaler looks so many seconds from now, unless it will anyway.
    fn scan_after(&mut self, seconds: f64) {
        if !self.is_scanning {
            self.is_scanning = true;
            self.after(seconds, WorldEvent::NodeAutoscaler);
        }
    }

    /// Adds nodes for pods that fit nowhere, and removes nodes that have been empty for long.
    pub(super) fn scan_nodes(&mut self) {
        self.is_scanning = false;
        self.add_nodes();
        let mut is_waiting = self.remove_nodes();
        is_waiting |= self
            .present
            .values()
            .any(|pod| self.pods[*pod].bound.is_none());
        if is_waiting {
            self.scan_after(SCAN_S);
        }
        self.count_cost();
    }

    /// Puts pods that wait on the nodes that are there or on their way, and asks for as many more as
    /// the rest needs.
    fn add_nodes(&mut self) {
        let there = self.nodes.iter().enumerate();
        let mut planned: Vec<(usize, Amounts, i64)> = there
            .filter(|(_, node)| node.removed.is_none() && !node.is_cordoned)
            .map(|(number, node)| {
                let (free, gpus) = self.room(number);
                (node.pool, free, gpus)
            })
            .collect();
        let is_waiting =
            |pod: &usize| self.pods[*pod].bound.is_none() && !self.pods[*pod].is_deleting();
        let mut waiting: Vec<usize> = self.present.values().copied().filter(is_waiting).collect();
        waiting.sort_unstable();
        let mut wanted = Vec::new();
        for pod in waiting {
            let (needs, gpus) = (self.pods[pod].requests(), self.pods[pod].gpus);
            let holds = |(_, free, free_gpus): &&mut (usize, Amounts, i64)| {
                fits(needs, *free) && gpus <= *free_gpus
            };
            if let Some((_, free, free_gpus)) = planned.iter_mut().find(holds) {
                *free = left(*free, needs);
                *free_gpus -= gpus;
                continue;
            }
            let count = |pool: usize| {
                let there = self
                    .nodes
                    .iter()
                    .filter(|node| node.pool == pool && node.removed.is_none());
                there.count() + wanted.iter().filter(|wanted| **wanted == pool).count()
            };
            let can = self
                .settings
                .pools
                .iter()
                .enumerate()
                .find(|(number, pool)| {
                    fits(needs, pool.allocatable)
                        && gpus <= pool.gpus
                        && u32::try_from(count(*number)).is_ok_and(|count| count < pool.max)
                });
            if let Some((number, pool)) = can {
                planned.push((number, left(pool.allocatable, needs), pool.gpus - gpus));
                wanted.push(number);
            }
        }
        for pool in wanted {
            let delay = self.settings.pools[pool].start_s;
            let node = self.add_node(pool, false);
            self.after(delay, WorldEvent::NodeReady(node));
        }
    }

    /// Adds a node, and returns its number.
    pub(super) fn add_node(&mut self, pool: usize, is_ready: bool) -> usize {
        let number = self.nodes.len();
        self.nodes.push(SimulatedNode {
            name: format!("{}-{number}", self.settings.pools[pool].name),
            pool,
            is_ready,
            is_cordoned: false,
            filled: Amounts::default(),
            empty_since: is_ready.then_some(self.now),
            removed: None,
        });
        number
    }

    /// Whether a node is empty and will be removed later.
    fn remove_nodes(&mut self) -> bool {
        let mut is_waiting = false;
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            let pool = &self.settings.pools[node.pool];
            let Some(since) = node.empty_since.filter(|_| node.removed.is_none()) else {
                continue;
            };
            let alike = |other: &&SimulatedNode| other.pool == node.pool && other.removed.is_none();
            let there = self.nodes.iter().filter(alike).count();
            if u32::try_from(there).is_ok_and(|there| there <= pool.min) {
                continue;
            }
            if self.now >= since.plus(pool.idle_s) {
                self.nodes[number].removed = Some(self.now);
                self.objects_changed();
            } else {
                is_waiting = true;
            }
        }
        is_waiting
    }

    /// A node has lost a pod: others may get its room.
    pub(super) fn capacity_was_freed(&mut self, node: Option<usize>) {
        if let Some(node) = node {
            if self.pods_on(node).next().is_none() {
                self.nodes[node].empty_since = Some(self.now);
                self.scan_after(SCAN_S);
            }
            let waiting: Vec<usize> = self.pods_on(node).collect();
            for pod in waiting {
                if !self.pods[pod].is_actuated() {
                    self.after(0.0, WorldEvent::Kubelet(pod));
                }
            }
        }
        self.after(0.0, WorldEvent::Scheduler);
    }
}
