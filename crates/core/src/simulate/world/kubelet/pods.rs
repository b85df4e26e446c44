//! The kubelets: pods start, end, and get new sizes.

use crate::ray::resource::Amounts;
use std::rc::Rc;

use crate::simulate::ray::node::RayNode;
use crate::simulate::world::World;
use crate::simulate::world::objects::{SimulatedPod, fits, remainder};
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::NodeId;
use crate::snapshot::gcs::HEAD_RESOURCE;

/// Seconds from a worker's deletion to the end of its raylet. The kubelet hears of the deletion by a watch,
/// as the scaler does, and has yet to tell the raylet: so the GCS does not report the end before the watch of
/// the scaler shows the deletion, unless that watch lags.
const RAYLET_TOLD_S: f64 = 0.1;

/// Seconds after which a kubelet tries again to take memory that is in use.
const SHRINK_AGAIN_S: f64 = 10.0;

impl World {
    /// The pod, if its containers are in this phase and nobody has asked for it to go.
    fn pod_in(&mut self, number: usize, phase: &str) -> Option<&mut SimulatedPod> {
        let pod = &mut self.machines.pods[number];
        let is_there = !pod.is_gone && !pod.is_deleting();
        (is_there && pod.phase() == phase).then_some(pod)
    }

    /// The containers of a pod run.
    pub(in crate::simulate::world) fn pod_runs(&mut self, number: usize) {
        let Some(pod) = self.pod_in(number, "Pending") else {
            return;
        };
        pod.object.status.phase = Some("Running".to_owned());
        // Counted and not drawn, so that no two pods have one address.
        let [_, high, middle, low] = u32::try_from(number).unwrap_or_default().to_be_bytes();
        pod.object.status.pod_ip = Some(format!("10.{high}.{middle}.{low}"));
        for status in &mut pod.object.status.container_statuses {
            status.ready = true;
        }
        pod.actuate();
        let delay = if pod.is_head {
            0.0
        } else {
            self.settings.ray_start_s
        };
        self.after(delay, WorldEvent::RayJoins(number));
        self.objects_changed();
    }

    /// The Ray node of a pod takes work.
    pub(in crate::simulate::world) fn ray_joins(&mut self, number: usize) {
        let Some(pod) = self.pod_in(number, "Running") else {
            return;
        };
        let is_head = pod.is_head;
        if is_head {
            Rc::clone(&self.disturbance).head_joined(self);
        } else if self.disturbance.is_gcs_away() {
            // It waits for the GCS.
            return self.after(self.settings.gcs_pull_s, WorldEvent::RayJoins(number));
        }
        let pod = &self.machines.pods[number];
        // KubeRay leaves the pods of a removed group alone, so that Ray may still begin to run in
        // one.
        let mut groups = self.groups.iter().chain(&self.former);
        let Some(group) = groups.find(|group| group.name == pod.group()) else {
            return;
        };
        let amounts = group.resources.iter();
        let amounts = amounts.map(|(name, amount)| (name, amount));
        let mut total = self.ray.names.bundle(amounts);
        if is_head {
            let marks = self.ray.names.number(HEAD_RESOURCE);
            // One, in Ray's ten-thousandths: the resource by which Ray tells the node of its head.
            total.set(marks, 10_000);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a share of an amount, in whole bytes"
        )]
        let monitor_bytes = (group.monitor).map(|share| (pod.memory() as f64 * share) as i64);
        // Numbered and not random, so that equal simulations have equal ids.
        let mut id = [0; 28];
        id[20..].copy_from_slice(&(self.ray.nodes.len() as u64 + 1).to_be_bytes());
        let of = (number, pod.name(), pod.group());
        self.ray.join(RayNode {
            labels: group.labels.clone(),
            monitor_bytes,
            ..RayNode::joining(NodeId::from(id), of, total, self.now)
        });
        self.ray_changed();
    }

    /// The raylet of a pod has ended.
    pub(in crate::simulate::world) fn ray_ends(&mut self, number: usize) {
        if let Some(node) = self.ray.node_of(number) {
            self.lose_ray_node(node);
            if !self.machines.pods[number].is_deleting() {
                self.after(self.settings.pod_end_s, WorldEvent::PodEnds(number));
            }
        }
    }

    /// The containers of a pod have ended, in one phase or the other.
    pub fn end_pod(&mut self, number: usize, phase: &str) {
        let pod = &mut self.machines.pods[number];
        if pod.is_gone || pod.has_ended() {
            return;
        }
        pod.object.status.phase = Some(phase.to_owned());
        let node = pod.node;
        self.capacity_was_freed(node);
        self.objects_changed();
        self.after(self.settings.operator_s, WorldEvent::Operator);
        self.count_cost();
    }

    /// Somebody asks for a pod to be deleted.
    pub fn delete_pod(&mut self, number: usize) {
        let stamp = self.now.timestamp();
        let pod = &mut self.machines.pods[number];
        if !pod.is_deleting() {
            pod.object.metadata.deletion_timestamp = Some(stamp);
            // Nothing has to be stopped in a pod that has ended or has never run.
            let runs = pod.phase() == "Running";
            let delay = if runs { self.settings.pod_stop_s } else { 0.0 };
            let node = pod.node;
            if runs && !pod.is_head {
                // Raylets end as soon as they are told to.
                self.after(RAYLET_TOLD_S, WorldEvent::RayEnds(number));
            }
            self.after(delay, WorldEvent::PodGone(number));
            self.reconsider_nodes(node);
            self.objects_changed();
        }
    }

    /// A deleted pod is gone.
    pub(in crate::simulate::world) fn pod_gone(&mut self, number: usize) {
        if let Some(node) = self.ray.node_of(number) {
            self.lose_ray_node(node);
        }
        let pod = &mut self.machines.pods[number];
        if std::mem::replace(&mut pod.is_gone, true) {
            return;
        }
        let node = pod.node;
        if let Some(own) = self.machines.present.get_mut(self.number) {
            own.remove(pod.name());
        }
        Rc::clone(&self.disturbance).pod_ended(self, number);
        self.capacity_was_freed(node);
        self.reconsider_nodes(node);
        self.after(self.settings.operator_s, WorldEvent::Operator);
        self.objects_changed();
        self.count_cost();
    }

    /// A Ray node ends, with what runs on it.
    pub fn lose_ray_node(&mut self, node: usize) {
        self.ledger.harmed += self.ray.lose(node, self.now) as u64;
        self.ray_changed();
    }

    /// The allocatable resources of the node of a pod.
    pub(in crate::simulate::world) fn allocatable_of(&self, pod: usize) -> Option<Amounts> {
        let node = self.machines.pods[pod].node?;
        Some(self.machines.pools[self.machines.nodes[node].pool].allocatable)
    }

    /// The kubelet of a pod admits its new size if the node has room for it, and otherwise defers it.
    pub(in crate::simulate::world) fn kubelet(&mut self, number: usize) {
        let Some(pod) = self.pod_in(number, "Running") else {
            return;
        };
        if pod.is_actuated() {
            // The spec asks for what there is again: what was said of another size is over.
            if !pod.object.status.conditions.is_empty() {
                pod.allocate();
                pod.actuate();
                self.objects_changed();
            }
            return;
        }
        let generation = pod.object.metadata.generation.unwrap_or(0);
        let (wanted, node) = (pod.spec_requests(), pod.node);
        let pending = |world: &mut Self, reason: &str, message: String| {
            let pod = &mut world.machines.pods[number];
            pod.set_resize("PodResizePending", Some(reason), Some(message));
            world.objects_changed();
        };
        if let Some(reason) = self.disturbance.resize_refusal() {
            // The kubelet looks again at what it deferred. What it calls infeasible stays so until the
            // pod's spec is changed.
            let message = "the kubelet of this simulation does not resize now".to_owned();
            return pending(self, reason, message);
        }
        if let (Some(node), Some(allocatable)) = (node, self.allocatable_of(number)) {
            let others = self.machines.pods_on(node).filter(|other| *other != number);
            // The kubelet counts what it has allocated to the other pods, not what their specs ask
            // for.
            let others = others.fold(self.machines.nodes[node].filled, |sum, other| {
                sum.plus(self.machines.pods[other].allocated())
            });
            if !fits(wanted, remainder(allocatable, others)) {
                return pending(self, "Deferred", deferred(wanted, others, allocatable));
            }
        }
        let pod = &mut self.machines.pods[number];
        pod.allocate();
        // Allocated resources are in the status before the containers have them.
        pod.set_resize("PodResizeInProgress", None, None);
        self.after(
            self.settings.resize_s,
            WorldEvent::Resized {
                pod: number,
                generation,
            },
        );
        self.objects_changed();
        self.count_cost();
    }

    /// The containers of a pod have their new size.
    pub(in crate::simulate::world) fn resized(&mut self, number: usize, generation: i64) {
        let pod = &self.machines.pods[number];
        if pod.is_gone || pod.object.metadata.generation != Some(generation) {
            return;
        }
        let in_use =
            (self.ray.node_of(number)).map_or(0, |node| self.ray.memory_in_use(node, self.now));
        let pod = &mut self.machines.pods[number];
        if in_use > pod.size()[1] {
            // A kubelet does not take memory that is in use, and tries again. (`kuberuntime_manager.go`)
            let message = "cannot decrease memory limits: attempting to set pod memory limit below current usage";
            pod.set_resize(
                "PodResizeInProgress",
                Some("Error"),
                Some(message.to_owned()),
            );
            let pod = number;
            self.after(SHRINK_AGAIN_S, WorldEvent::Resized { pod, generation });
            return self.objects_changed();
        }
        pod.actuate();
        self.ledger.resizes += 1;
        let node = pod.node;
        self.capacity_was_freed(node);
        self.objects_changed();
        self.count_cost();
    }
}

/// The kubelet's own message. (`pkg/kubelet/allocation`, and the errors of its admission.)
fn deferred(wanted: Amounts, used: Amounts, capacity: Amounts) -> String {
    let milli = |amounts: Amounts| amounts.cpu.unwrap_or_default().ceil_milli();
    let bytes = |amounts: Amounts| amounts.memory.unwrap_or_default().ceil_units();
    let (name, [wanted, used, capacity]) = if milli(wanted) + milli(used) > milli(capacity) {
        ("cpu", [wanted, used, capacity].map(milli))
    } else {
        ("memory", [wanted, used, capacity].map(bytes))
    };
    format!(
        "Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}"
    )
}
