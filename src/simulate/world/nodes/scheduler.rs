//! The scheduler, and the node autoscaler beside it: there is one of each, whatever the number of
//! clusters.

use crate::simulate::world::machines::Notice;
use crate::simulate::world::queue::WorldEvent;
use crate::simulate::world::state::World;

/// The interval at which the node autoscaler looks at the nodes while there is something to do.
/// (Cluster Autoscaler's `scan-interval`.)
pub(super) const SCAN_S: f64 = 10.0;

impl World {
    /// Binds the pods that fit somewhere, in the order in which they were made.
    pub(in crate::simulate::world) fn schedule_pods(&mut self) {
        let mut unbound = false;
        for pod in self.machines.unbound() {
            if self.machines.pools.is_empty() {
                self.bind(pod, None);
            } else if let Some(node) = self.machines.best_node(pod) {
                self.bind(pod, Some(node));
            } else {
                unbound = true;
                let refused = &mut self.machines.pods[pod];
                let cluster = refused.cluster;
                if refused.refuse() {
                    self.tell(cluster, Notice::Refused);
                }
            }
        }
        if unbound {
            self.scan_after(0.0);
        }
    }

    fn bind(&mut self, pod: usize, node: Option<usize>) {
        let name = node.map(|node| self.machines.nodes[node].name.clone());
        let pulled_s = node.map_or(0.0, |node| self.machines.pull(node, pod, self.now));
        let bound = &mut self.machines.pods[pod];
        bound.object.spec.node_name = Some(name.unwrap_or_else(|| "node".to_owned()));
        bound.node = node;
        bound.bound = Some(self.now);
        bound.pulled_s = pulled_s;
        bound.object.status.conditions.clear();
        bound.allocate();
        let cluster = bound.cluster;
        if let Some(node) = node {
            self.machines.nodes[node].empty_since = None;
        }
        self.tell(cluster, Notice::Bound(pod));
        self.tell_others(cluster, Notice::Loads);
        self.reconsider_nodes(node);
    }

    /// The node autoscaler looks so many seconds from now, unless it will anyway.
    pub(super) fn scan_after(&mut self, seconds: f64) {
        if !self.machines.is_scanning {
            self.machines.is_scanning = true;
            self.after(seconds, WorldEvent::NodeAutoscaler);
        }
    }

    /// Adds nodes for pods that fit nowhere, and removes nodes that have been empty for long.
    pub(in crate::simulate::world) fn scan_nodes(&mut self) {
        self.machines.is_scanning = false;
        for pool in self.machines.missing_nodes() {
            let delay = self.machines.pools[pool].start_s;
            let node = self.machines.add_node(pool, None);
            self.after(delay, WorldEvent::NodeReady(node));
        }
        let mut is_waiting = self.remove_nodes();
        is_waiting |= self.consolidate();
        is_waiting |= self.machines.has_waiting();
        if is_waiting {
            self.scan_after(SCAN_S);
        }
        self.count_cost();
    }

    /// Removes nodes that have been empty for long, or are empty because they had to go. Returns whether another
    /// one is empty and will be removed later.
    fn remove_nodes(&mut self) -> bool {
        let mut is_waiting = false;
        for number in 0..self.machines.nodes.len() {
            let node = &self.machines.nodes[number];
            let pool = &self.machines.pools[node.pool];
            let Some(since) = node.empty_since.filter(|_| node.removed.is_none()) else {
                continue;
            };
            if node.disrupted.is_some() {
                self.machines.nodes[number].removed = Some(self.now);
                self.nodes_changed();
                continue;
            }
            let there = self.machines.nodes_of(node.pool);
            if u32::try_from(there).is_ok_and(|there| there <= pool.min) {
                continue;
            }
            if self.now >= since.plus(pool.idle_s) {
                self.machines.nodes[number].removed = Some(self.now);
                self.nodes_changed();
            } else {
                is_waiting = true;
            }
        }
        is_waiting
    }

    /// A Kubernetes node is ready.
    pub(in crate::simulate::world) fn node_ready(&mut self, number: usize) {
        let node = &mut self.machines.nodes[number];
        if node.removed.is_none() {
            node.is_ready = true;
            node.empty_since = Some(self.now);
            node.changed = self.now;
            self.after(0.0, WorldEvent::Scheduler);
            self.nodes_changed();
        }
    }

    /// There are other nodes than before, of which all clusters hear.
    pub fn nodes_changed(&mut self) {
        self.objects_changed();
        self.tell_others(self.number, Notice::Nodes);
    }

    /// A node has lost a pod: others may get its room.
    pub fn capacity_was_freed(&mut self, node: Option<usize>) {
        if let Some(node) = node {
            if self.machines.pods_on(node).next().is_none() {
                self.machines.nodes[node].empty_since = Some(self.now);
                self.scan_after(SCAN_S);
            }
            let waiting: Vec<usize> = self.machines.pods_on(node).collect();
            for pod in waiting {
                let waiting = &self.machines.pods[pod];
                if !waiting.is_actuated() {
                    self.tell(waiting.cluster, Notice::Room(pod));
                }
            }
            self.tell_others(self.number, Notice::Loads);
        }
        self.reconsider_room();
        self.after(0.0, WorldEvent::Scheduler);
    }
}
