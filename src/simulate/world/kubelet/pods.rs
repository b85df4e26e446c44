//! The kubelets: pods start, end, and get new sizes.

use crate::ray::resource::Amounts;
use crate::simulate::ray::node::RayNode;
use crate::simulate::world::World;
use crate::simulate::world::disturbance::ResizeRefusal;
use crate::simulate::world::objects::{fits, left};
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::NodeId;
use crate::snapshot::gcs::HEAD_RESOURCE;

/// Seconds from a worker's deletion to the end of its raylet. The kubelet hears of the deletion by a watch,
/// as the scaler does, and has yet to tell the raylet: so the GCS does not report the end before the watch of
/// the scaler shows the deletion, unless that watch lags.
const RAYLET_TOLD_S: f64 = 0.1;

impl World {
    /// The containers of a pod run.
    pub(in crate::simulate::world) fn pod_runs(&mut self, number: usize) {
        let pod = &mut self.machines.pods[number];
        if pod.is_gone || pod.is_deleting() || pod.phase() != "Pending" {
            return;
        }
        pod.set_phase("Running");
        pod.object.status.pod_ip = Some(format!(
            "10.{}.{}.{}",
            number >> 16 & 255,
            number >> 8 & 255,
            number & 255
        ));
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
        let pod = &self.machines.pods[number];
        if pod.is_gone || pod.is_deleting() || pod.phase() != "Running" {
            return;
        }
        let is_head = pod.is_head;
        if is_head {
            self.head_joins();
        } else if self.is_gcs_away() {
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
        let amounts = group
            .resources
            .iter()
            .map(|(name, amount)| (name.as_str(), *amount));
        let mut total = self.ray.names.bundle(amounts);
        if is_head {
            let marks = self.ray.names.number(HEAD_RESOURCE);
            // One, in Ray's ten-thousandths: the resource by which Ray tells the node of its head.
            total.set(marks, 10_000);
        }
        let limit = pod.memory();
        let monitor_bytes = group.monitor.map(|share| part(limit, share));
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

    /// The containers of a pod have ended.
    pub(in crate::simulate::world) fn pod_ends(&mut self, number: usize) {
        self.ray.end_headless(number);
        self.end_pod(number, "Succeeded");
    }

    /// The containers of a pod have ended, in one phase or the other.
    pub fn end_pod(&mut self, number: usize, phase: &str) {
        let pod = &mut self.machines.pods[number];
        if pod.is_gone || pod.has_ended() {
            return;
        }
        pod.set_phase(phase);
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
        } else {
            self.headless_gone(number);
        }
        let pod = &mut self.machines.pods[number];
        if pod.is_gone {
            return;
        }
        pod.is_gone = true;
        let (name, node, is_head) = (pod.name().to_owned(), pod.node, pod.is_head);
        if let Some(own) = self.machines.present.get_mut(self.number) {
            own.remove(&name);
        }
        if is_head {
            self.head_gone();
        }
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
        let pod = &self.machines.pods[number];
        if pod.is_gone || pod.is_deleting() || pod.phase() != "Running" {
            return;
        }
        if pod.is_actuated() {
            // The spec asks for what there is again: what was said of another size is over.
            if !pod.object.status.conditions.is_empty() {
                let pod = &mut self.machines.pods[number];
                pod.allocate();
                pod.actuate();
                self.objects_changed();
            }
            return;
        }
        let generation = pod.object.metadata.generation.unwrap_or(0);
        let wanted = pod.wanted();
        if let Some(refusal) = self.disturbance.resize_refusal() {
            return self.refuse_resize(number, refusal);
        }
        if let (Some(node), Some(allocatable)) = (pod.node, self.allocatable_of(number)) {
            let others = self.machines.pods_on(node).filter(|other| *other != number);
            // The kubelet counts what it has allocated to the other pods, not what their specs ask
            // for.
            let others = others.fold(self.machines.nodes[node].filled, |sum, other| {
                sum.plus(self.machines.pods[other].allocated())
            });
            if !fits(wanted, left(allocatable, others)) {
                let message = deferred(wanted, others, allocatable);
                self.machines.pods[number].set_resize(
                    "PodResizePending",
                    Some("Deferred"),
                    Some(message),
                );
                self.objects_changed();
                return;
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

    /// The kubelet does not resize a pod, whatever room there is.
    fn refuse_resize(&mut self, number: usize, refusal: ResizeRefusal) {
        // The kubelet looks again at what it deferred. What it calls infeasible stays so until the
        // pod's spec is changed.
        let reason = match refusal {
            ResizeRefusal::Deferred => "Deferred",
            ResizeRefusal::Infeasible => "Infeasible",
        };
        let message = "the kubelet of this simulation does not resize now".to_owned();
        self.machines.pods[number].set_resize("PodResizePending", Some(reason), Some(message));
        self.objects_changed();
    }

    /// The containers of a pod have their new size.
    pub(in crate::simulate::world) fn resized(&mut self, number: usize, generation: i64) {
        let pod = &self.machines.pods[number];
        if pod.is_gone || pod.object.metadata.generation != Some(generation) {
            return;
        }
        if self.is_in_use(number) {
            return self.wait_for_memory(number, generation);
        }
        let pod = &mut self.machines.pods[number];
        pod.actuate();
        self.ledger.resizes += 1;
        let node = pod.node;
        self.capacity_was_freed(node);
        self.objects_changed();
        self.count_cost();
    }
}

/// A share of an amount of bytes, in whole bytes.
fn part(bytes: i64, share: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a float is cast to the nearest number that there is"
    )]
    let part = (bytes as f64 * share) as i64;
    part
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
