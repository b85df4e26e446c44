//! The scheduler, and the node autoscaler beside it: there is one of each, whatever the number of
//! clusters.

use crate::ray::resource::Amounts;
use crate::simulate::world::machines::Notice;
use crate::simulate::world::objects::{Room, unscheduled};
use crate::simulate::world::queue::WorldEvent;
use crate::simulate::world::state::World;

/// The interval at which the node autoscaler looks at the nodes while there is something to do.
/// (Cluster Autoscaler's `scan-interval`.)
pub(super) const SCAN_S: f64 = 10.0;

impl World {
    /// Binds the pods that fit somewhere, in the order in which they were made.
    pub(in crate::simulate::world) fn schedule_pods(&mut self) {
        let mut is_room_missing = false;
        for pod in self.machines.unbound() {
            if self.machines.pools.is_empty() {
                self.bind(pod, None);
                continue;
            }
            // The node with the most room that holds the pod, the first of equal ones. (`LeastAllocated`,
            // the scheduler's default.)
            let mut best: Option<(Amounts, usize)> = None;
            for (number, node) in self.machines.nodes.iter().enumerate() {
                if !node.is_ready || !node.is_open() {
                    continue;
                }
                let room = self.machines.room(number);
                if self.machines.pods[pod].fits_in(node.pool, room)
                    && best.is_none_or(|(most, _)| room.0.cpu > most.cpu)
                {
                    best = Some((room.0, number));
                }
            }
            if let Some((_, node)) = best {
                self.bind(pod, Some(node));
                continue;
            }
            is_room_missing = true;
            let refused = &mut self.machines.pods[pod];
            if refused.object.status.conditions.is_empty() {
                refused.object.status.conditions = vec![unscheduled("Unschedulable")];
                let cluster = refused.cluster;
                self.tell(cluster, Notice::Refused);
            }
        }
        if is_room_missing {
            self.scan_after(0.0);
        }
    }

    fn bind(&mut self, pod: usize, node: Option<usize>) {
        let bound = &mut self.machines.pods[pod];
        let mut name = "node".to_owned();
        if let Some(node) = node.map(|node| &mut self.machines.nodes[node]) {
            name.clone_from(&node.name);
            node.empty_since = None;
            // It pulls the images that it neither has nor pulls already, all at once.
            let pulled = self.now.plus(self.machines.pools[node.pool].image_pull_s);
            let spec = &bound.object.spec;
            let containers = spec.init_containers.iter().chain(&spec.containers);
            let images = containers.filter_map(|container| container.image.clone());
            let ready = images.map(|image| *node.images.entry(image).or_insert(pulled));
            bound.pulled_s = ready.max().map_or(0.0, |ready| ready.since(self.now));
        }
        bound.object.spec.node_name = Some(name);
        bound.node = node;
        bound.bound = Some(self.now);
        bound.object.status.conditions.clear();
        bound.allocate();
        let cluster = bound.cluster;
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
        self.add_nodes();
        let mut is_waiting = false;
        for number in 0..self.machines.nodes.len() {
            let node = &self.machines.nodes[number];
            let pool = &self.machines.pools[node.pool];
            let Some(since) = node.empty_since.filter(|_| node.removed.is_none()) else {
                continue;
            };
            // A node that had to go goes as soon as it is empty; others stay for a while, and the pool keeps
            // its minimum.
            if node.disrupted.is_none() {
                let count = self.machines.nodes_of(node.pool);
                if u32::try_from(count).is_ok_and(|count| count <= pool.min) {
                    continue;
                }
                if self.now < since.plus(pool.idle_s) {
                    is_waiting = true;
                    continue;
                }
            }
            self.machines.nodes[number].removed = Some(self.now);
            self.nodes_changed();
        }
        is_waiting |= self.consolidate();
        is_waiting |= self.machines.has_waiting();
        if is_waiting {
            self.scan_after(SCAN_S);
        }
        self.count_cost();
    }

    /// Puts pods that wait on the nodes that are there or on their way, and asks for as many more as the rest
    /// needs.
    fn add_nodes(&mut self) {
        let machines = &self.machines;
        let open = machines.nodes.iter().enumerate();
        let open = open.filter(|(_, node)| node.is_open());
        let mut planned: Vec<(usize, Room)> = open
            .map(|(number, node)| (node.pool, machines.room(number)))
            .collect();
        let mut new_nodes = Vec::new();
        for pod in machines.unbound() {
            let pod = &machines.pods[pod];
            if pod.takes_room(&mut planned) {
                continue;
            }
            let count = |pool: usize| {
                machines.nodes_of(pool) + new_nodes.iter().filter(|of| **of == pool).count()
            };
            // The first such pool of the file, so that its author decides by the order.
            let larger = machines.pools.iter().enumerate().find(|(number, pool)| {
                pod.fits_in(*number, (pool.allocatable, pool.gpus))
                    && u32::try_from(count(*number)).is_ok_and(|count| count < pool.max)
            });
            if let Some((number, pool)) = larger {
                planned.push((number, pod.leaves((pool.allocatable, pool.gpus))));
                new_nodes.push(number);
            }
        }
        for pool in new_nodes {
            let delay = self.machines.pools[pool].start_s;
            let node = self.machines.add_node(pool, None);
            self.after(delay, WorldEvent::NodeReady(node));
        }
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
            let pods: Vec<usize> = self.machines.pods_on(node).collect();
            if pods.is_empty() {
                self.machines.nodes[node].empty_since = Some(self.now);
                self.scan_after(SCAN_S);
            }
            for pod in pods {
                let resizing = &self.machines.pods[pod];
                if !resizing.is_actuated() {
                    self.tell(resizing.cluster, Notice::Room(pod));
                }
            }
            self.tell_others(self.number, Notice::Loads);
        }
        self.reconsider_room();
        self.after(0.0, WorldEvent::Scheduler);
    }
}
