//! Kubelets that come to no end with a pod: its deletion hangs, or one of its init containers, for good.

use rayfit_core::simulate::world::objects::SimulatedPod;
use rayfit_core::simulate::world::queue::WorldEvent;
use rayfit_core::snapshot::pod_object::ContainerStatus;

use super::trial::FaultTrial;

impl FaultTrial<'_> {
    /// Whether what is about to happen to a pod hangs from now on.
    pub(super) fn begins_to_hang(&mut self, event: WorldEvent) -> bool {
        let [deletions, starts] = self.troubles.borrow().hanging;
        let (number, group) = match event {
            WorldEvent::PodGone(pod) => (pod, deletions),
            WorldEvent::PodRuns(pod) => (pod, starts),
            _ => return false,
        };
        let group = group.and_then(|group| self.scene.groups.get(group));
        let pod = &mut self.world.machines.pods[number];
        let is_to_start = !pod.is_deleting() && pod.phase() == "Pending";
        let is_due = matches!(event, WorldEvent::PodGone(_)) || is_to_start;
        if pod.is_head || pod.is_gone || !is_due || group.is_none_or(|of| of.name != pod.group()) {
            return false;
        }
        if is_to_start {
            let waits = ContainerStatus {
                name: "wait".to_owned(),
                ..ContainerStatus::default()
            };
            pod.object.status.init_container_statuses = vec![waits];
        }
        let name = pod.name().to_owned();
        self.world.objects_changed();
        self.say(format!("hangs from now on: {name}"));
        self.hung.insert(name);
        true
    }

    /// The pods of a group that hang.
    pub(super) fn hanging(&self, group: &str) -> Vec<&SimulatedPod> {
        let workers = self.world.workers();
        let of_group = workers.filter(|pod| pod.group() == group && self.hung.contains(pod.name()));
        of_group.collect()
    }

    /// Whether KubeRay leaves a group alone: it neither makes nor deletes pods while one hangs that it has deleted.
    pub(super) fn is_left(&self, group: &str) -> bool {
        self.hanging(group).iter().any(|pod| pod.is_awaited)
    }

    /// How many replicas of a group can have pods that do not hang, within its maximum.
    pub(super) fn replicas_beside(&self, group: &str, most: i64, hosts: i64) -> i64 {
        let taken = i64::try_from(self.hanging(group).len()).unwrap_or(i64::MAX);
        if self.is_left(group) {
            0
        } else {
            most - (taken + hosts - 1) / hosts
        }
    }
}
