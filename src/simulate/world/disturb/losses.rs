//! Pods and nodes that are lost, and objects that people change.

use serde_json::Value;

use crate::simulate::world::World;
use crate::simulate::world::machines::Notice;
use crate::simulate::world::objects::SimulatedPod;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::amounts::Amounts;

/// Who changes objects by hand.
const PEOPLE: &str = "people";

impl World {
    /// The people's change of the RayCluster. What admission refuses changes nothing.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut edited = self.cluster.object().clone();
        change(&mut edited);
        if edited != *self.cluster.object() && self.denial(&edited, PEOPLE).is_none() {
            let _ = self.set_cluster(edited);
        }
    }

    /// People delete a worker pod; `pick` says which. Returns its name.
    pub fn remove_pod(&mut self, pick: usize) -> Option<String> {
        let number = self.pick_worker(pick, |_| true)?;
        self.delete_pod(number);
        Some(self.machines.pods[number].name().to_owned())
    }

    /// People delete the pod of a name, if there is one.
    pub(super) fn remove_named(&mut self, name: &str) {
        if let Some(number) = self
            .pod_named(name)
            .filter(|pod| !self.machines.pods[*pod].is_head)
        {
            self.delete_pod(number);
        }
    }

    /// The containers of the pod of a name end with an error, if they run.
    pub(super) fn fail_named(&mut self, name: &str) {
        let number = self.pod_named(name);
        let runs = |pod: &usize| {
            let pod = &self.machines.pods[*pod];
            !pod.is_head && !pod.is_deleting() && pod.phase() == "Running"
        };
        if let Some(number) = number.filter(runs) {
            self.fail(number);
        }
    }

    /// Ray's notes about resizes are removed from all pods.
    pub fn remove_notes(&mut self) {
        for number in self.own().collect::<Vec<_>>() {
            self.machines.pods[number]
                .object
                .metadata
                .annotations
                .resize_status = None;
        }
        self.objects_changed();
    }

    /// The containers of a worker end with an error. Of all that run, `pick` says which. Returns its
    /// name.
    pub fn fail_pod(&mut self, pick: usize) -> Option<String> {
        let number = self.pick_worker(pick, |pod| pod.phase() == "Running")?;
        self.fail(number);
        Some(self.machines.pods[number].name().to_owned())
    }

    fn fail(&mut self, number: usize) {
        if let Some(node) = self.ray.node_of(number) {
            self.lose_ray_node(node);
        }
        self.end_pod(number, "Failed");
    }

    /// A Kubernetes node without the head is gone with its pods. Returns its name.
    pub fn lose_node(&mut self, pick: usize) -> Option<String> {
        let node = self.pick_node(pick)?;
        self.take_node(node);
        Some(self.machines.nodes[node].name.clone())
    }

    /// A Kubernetes node is gone with its pods.
    pub(super) fn take_node(&mut self, node: usize) {
        self.machines.nodes[node].removed = Some(self.now);
        for pod in self.machines.bound_to(node) {
            self.tell(self.machines.pods[pod].cluster, Notice::Gone(pod));
        }
        self.nodes_changed();
    }

    /// People drain a Kubernetes node without the head: its pods are deleted, and no pod is bound to
    /// it. Returns its name.
    pub fn drain_node(&mut self, pick: usize) -> Option<String> {
        let node = self.pick_node(pick)?;
        self.machines.nodes[node].is_cordoned = true;
        for pod in self.machines.bound_to(node) {
            self.tell(self.machines.pods[pod].cluster, Notice::Evicted(pod));
        }
        self.tell_others(self.number, Notice::Nodes);
        Some(self.machines.nodes[node].name.clone())
    }

    /// Pods can be bound to every Kubernetes node again.
    pub fn uncordon_nodes(&mut self) {
        for node in &mut self.machines.nodes {
            node.is_cordoned = false;
        }
        self.after(0.0, WorldEvent::Scheduler);
    }

    /// One of the Kubernetes nodes on which the head is not.
    fn pick_node(&self, pick: usize) -> Option<usize> {
        let has_head = |node: usize| {
            self.machines
                .pods_on(node)
                .any(|pod| self.machines.pods[pod].is_head)
        };
        let there = self.machines.nodes.iter().enumerate();
        let there = there.filter(|(_, node)| node.is_ready && node.removed.is_none());
        let there = there.map(|(number, _)| number);
        picked(there.filter(|node| !has_head(*node)), pick)
    }

    /// One of the workers that are not being deleted, of those that `is_one` says are meant.
    fn pick_worker(&self, pick: usize, is_one: impl Fn(&SimulatedPod) -> bool) -> Option<usize> {
        let is_one = |number: &usize| {
            let pod = &self.machines.pods[*number];
            !pod.is_head && !pod.is_deleting() && is_one(pod)
        };
        picked(self.own().filter(is_one), pick)
    }

    /// Pods of others take all CPU that there is.
    pub fn fill_nodes(&mut self) {
        for node in 0..self.machines.nodes.len() {
            let (free, _) = self.machines.room(node);
            self.machines.nodes[node].filled.cpu = free.cpu;
        }
    }

    /// The pods of others are gone from all nodes.
    pub fn empty_nodes(&mut self) {
        for node in 0..self.machines.nodes.len() {
            self.machines.nodes[node].filled = Amounts::default();
            self.capacity_was_freed(Some(node));
        }
    }

    /// Kubelets look again at the resizes that they deferred.
    pub fn kubelets_retry(&mut self) {
        let is_deferred = |pod: &usize| {
            let conditions = self.machines.pods[*pod].object.status.conditions.iter();
            let mut reasons = conditions.filter_map(|one| one.reason.as_deref());
            reasons.any(|reason| reason == "Deferred")
        };
        let deferred = self.own().filter(is_deferred);
        for pod in deferred.collect::<Vec<_>>() {
            self.after(0.0, WorldEvent::Kubelet(pod));
        }
    }
}

/// Picks one of several: any number `pick` gives one, where there are any.
fn picked(of: impl Iterator<Item = usize>, pick: usize) -> Option<usize> {
    let there: Vec<usize> = of.collect();
    there.get(pick.checked_rem(there.len())?).copied()
}
