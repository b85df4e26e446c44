//! What faults do to a world and to its scaler, when they begin and when they end.

use rayfit_core::ray::ippr::ANNOTATION;
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::WorldView;
use serde_json::{Value, json};

use super::head::restart_gcs;
use super::log::LogEntry;
use super::losses::{self, edit};
use super::plan::FaultKind;
use super::trial::{Dying, FaultTrial, Step};
use super::trouble::{BadAnswer, CallEvent};

impl FaultTrial<'_> {
    /// The process is killed, with what is under way.
    pub(super) fn die(&mut self, replica: usize) {
        let Some(dying) = self.dying.take() else {
            return;
        };
        self.say(format!(
            "the scaler is killed, calls done: {}",
            dying.is_done
        ));
        if dying.is_done {
            for effect in self.controllers.calls(replica) {
                let _ = self.world.call(&effect);
            }
        }
        (self.controllers).kill(replica, dying.seconds, &mut self.world);
    }

    pub(super) fn say(&mut self, text: String) {
        self.troubles.log(self.world.now, LogEntry::Fault(text));
    }

    pub(super) fn carry_out(&mut self, step: Step, kind: FaultKind) {
        self.say(format!("{step:?}: {kind:?}"));
        match step {
            Step::Begins => self.begin(kind),
            Step::Ends => self.end(kind),
        }
    }

    fn begin(&mut self, kind: FaultKind) {
        let (world, troubles) = (&mut self.world, &self.troubles);
        match kind {
            FaultKind::ScalerDies {
                calls,
                is_done,
                seconds,
            } => {
                self.dying = Some(Dying {
                    calls,
                    is_done,
                    seconds,
                });
            }
            FaultKind::CallsFail {
                calls,
                answer,
                is_done,
            } => {
                let bad = BadAnswer { answer, is_done };
                let answers = std::iter::repeat_n(bad, calls.min(1000) as usize);
                troubles.borrow_mut().answers.extend(answers);
            }
            FaultKind::WatchLags { lag, .. } => world.settings.watch_lag_s = lag,
            FaultKind::LeaseLost { seconds } => {
                let working = self.controllers.working();
                self.controllers.kill(working, seconds, world);
            }
            FaultKind::CallsRefused { of, answer, .. } => {
                troubles.borrow_mut().refused = Some((of, answer));
            }
            FaultKind::WatchStops { of, .. } => troubles.borrow_mut().lost = Some(of),
            FaultKind::GcsAway { .. } | FaultKind::GcsRestarts { .. } => {
                troubles.borrow_mut().is_gcs_away = true;
            }
            FaultKind::PodFails { pick } => {
                let failed = losses::fail_pod(world, pick);
                self.say(format!("failed: {failed:?}"));
            }
            FaultKind::PodsStartSlowly { takes, .. } => world.settings.pod_start_s = takes,
            FaultKind::MaxReplicas { group, max, .. } => {
                self.set(group, "maxReplicas", json!(max));
            }
            FaultKind::GroupSuspended { group, .. } => self.set(group, "suspend", json!(true)),
            FaultKind::GroupRemoved => edit(world, |cluster| {
                let groups = cluster.pointer_mut("/spec/workerGroupSpecs");
                if let Some(groups) = groups.and_then(Value::as_array_mut) {
                    groups.truncate(1);
                }
            }),
            FaultKind::ReplicasReset { group, replicas } => {
                self.set(group, "replicas", json!(replicas));
            }
            FaultKind::MinReplicas { group, min, .. } => {
                self.set(group, "minReplicas", json!(min));
            }
            FaultKind::ManifestApplied => {
                let spec = self.manifest["spec"].clone();
                edit(world, |cluster| cluster["spec"] = spec);
            }
            FaultKind::GrowthRemoved { .. } => edit(world, |cluster| {
                let annotations = cluster.pointer_mut("/metadata/annotations");
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    annotations.remove(ANNOTATION);
                }
            }),
            FaultKind::PodDeleted { pick } => {
                let deleted = losses::remove_pod(world, pick);
                self.say(format!("deleted by people: {deleted:?}"));
            }
            FaultKind::NotesRemoved => losses::remove_notes(world),
            FaultKind::HeadLost { node, again } => self.lose_head(node, again),
            FaultKind::ReadsHeld { .. } => troubles.hold_reads(true, world),
            FaultKind::DemandInPart { percent, .. } => troubles.tell_demand(Some(percent), world),
            FaultKind::NodeLost { .. }
            | FaultKind::NodeDrained { .. }
            | FaultKind::DeletionsHang { .. }
            | FaultKind::InitContainersHang { .. } => self.begin_on_nodes(kind),
            FaultKind::NodesFilled { .. } => losses::fill_nodes(world),
            FaultKind::QuotaSet { cores, .. } => {
                troubles.borrow_mut().quota = Some(cores);
            }
            FaultKind::ResourcesRequested { cpu, bundles, .. } => {
                troubles.borrow_mut().requested = Some((cpu, bundles));
                world.ray.touch();
            }
            FaultKind::CallsSlow { takes, .. } => world.settings.call_s = takes,
            FaultKind::ReplicaDies { .. }
            | FaultKind::ReplicaStops { .. }
            | FaultKind::ReplicaCut { .. }
            | FaultKind::ReplicaFrozen { .. } => self.begin_of_replica(kind),
            FaultKind::WatchRepeats { .. }
            | FaultKind::WatchOvertaken { .. }
            | FaultKind::GcsLies { .. }
            | FaultKind::ResizesRefused { .. }
            | FaultKind::AtCall { .. } => self.begin_to_mislead(kind),
            FaultKind::ClockAhead { by, .. } => self.controllers.set_clocks(by),
        }
    }

    /// Kubernetes nodes go, or their kubelets come to no end with pods.
    fn begin_on_nodes(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::NodeLost { pick } => {
                let lost = losses::lose_node(&mut self.world, pick);
                self.say(format!("lost: {lost:?}"));
            }
            FaultKind::NodeDrained { pick, .. } => {
                let drained = losses::drain_node(&mut self.world, pick);
                self.say(format!("drained: {drained:?}"));
            }
            FaultKind::DeletionsHang { group, .. } => {
                self.troubles.borrow_mut().hanging[0] = Some(group);
            }
            FaultKind::InitContainersHang { group, .. } => {
                self.troubles.borrow_mut().hanging[1] = Some(group);
            }
            _ => {}
        }
    }

    /// What is so, and what the scaler knows, are not the same.
    fn begin_to_mislead(&mut self, kind: FaultKind) {
        let (world, troubles) = (&mut self.world, &self.troubles);
        match kind {
            FaultKind::WatchRepeats { ago } => {
                let is_old = |(at, _): &&(Moment, WorldView)| world.now.since(*at) >= ago;
                if let Some((_, view)) = self.views.iter().rev().find(is_old) {
                    repeat(world, view);
                    self.controllers.wake(world);
                }
            }
            FaultKind::WatchOvertaken { of, lag, .. } => {
                troubles.watch_again(world);
                troubles.borrow_mut().slow = Some((of, lag));
            }
            FaultKind::ResizesRefused { refusal, .. } => {
                troubles.borrow_mut().resizes = Some(refusal);
            }
            FaultKind::GcsLies { lie, .. } => troubles.lie(Some(lie), world),
            FaultKind::AtCall { of, event, .. } => {
                troubles.borrow_mut().at_call = Some((of, event));
            }
            _ => {}
        }
    }

    fn begin_of_replica(&mut self, kind: FaultKind) {
        let (world, controllers) = (&mut self.world, &mut self.controllers);
        match kind {
            FaultKind::ReplicaDies { replica, seconds } => {
                controllers.kill(replica, seconds, world);
            }
            FaultKind::ReplicaStops { replica, .. } => controllers.stop(replica),
            FaultKind::ReplicaCut { replica, what, .. } => controllers.cut_off(replica, Some(what)),
            FaultKind::ReplicaFrozen { replica, seconds } => {
                controllers.freeze(replica, seconds, world.now);
            }
            _ => {}
        }
    }

    fn end(&mut self, kind: FaultKind) {
        let (world, troubles, usual) = (&mut self.world, &self.troubles, &self.usual);
        match kind {
            FaultKind::ScalerDies { .. } => self.die(self.controllers.working()),
            FaultKind::CallsFail { .. } => troubles.borrow_mut().answers.clear(),
            FaultKind::WatchLags { .. } => world.settings.watch_lag_s = usual.watch_lag_s,
            FaultKind::WatchStops { .. } | FaultKind::WatchOvertaken { .. } => {
                troubles.watch_again(world);
            }
            FaultKind::GcsLies { .. } => troubles.lie(None, world),
            FaultKind::AtCall { event, .. } => {
                troubles.borrow_mut().at_call = None;
                if event == CallEvent::MaximaLowered {
                    for group in 0..self.scene.groups.len() {
                        let max = self.scene.groups[group].max;
                        self.set(group, "maxReplicas", json!(max));
                    }
                }
            }
            FaultKind::GcsAway { .. } => troubles.borrow_mut().is_gcs_away = false,
            FaultKind::GcsRestarts { .. } => {
                let mut trouble = troubles.borrow_mut();
                trouble.is_gcs_away = false;
                trouble.requested = None;
                drop(trouble);
                restart_gcs(world);
            }
            FaultKind::ResizesRefused { .. } => {
                troubles.borrow_mut().resizes = None;
                losses::kubelets_retry(world);
            }
            FaultKind::DeletionsHang { .. } => troubles.borrow_mut().hanging[0] = None,
            FaultKind::InitContainersHang { .. } => troubles.borrow_mut().hanging[1] = None,
            FaultKind::PodsStartSlowly { .. } => world.settings.pod_start_s = usual.pod_start_s,
            FaultKind::MaxReplicas { group, .. } => {
                let max = self.scene.groups.get(group).map_or(1, |group| group.max);
                self.set(group, "maxReplicas", json!(max));
            }
            FaultKind::MinReplicas { group, .. } => {
                let min = self.scene.groups.get(group).map_or(0, |group| group.min);
                self.set(group, "minReplicas", json!(min));
            }
            FaultKind::GroupSuspended { group, .. } => self.set(group, "suspend", json!(false)),
            FaultKind::GrowthRemoved { .. } => {
                if let Some(growth) = self.manifest["metadata"]["annotations"].get(ANNOTATION) {
                    let growth = growth.clone();
                    edit(world, |cluster| {
                        cluster["metadata"]["annotations"][ANNOTATION] = growth;
                    });
                }
            }
            FaultKind::CallsRefused { .. } => troubles.borrow_mut().refused = None,
            FaultKind::ReadsHeld { .. } => troubles.hold_reads(false, world),
            FaultKind::DemandInPart { .. } => troubles.tell_demand(None, world),
            FaultKind::NodeDrained { .. } => losses::uncordon_nodes(world),
            FaultKind::NodesFilled { .. } => losses::empty_nodes(world),
            FaultKind::QuotaSet { .. } => troubles.borrow_mut().quota = None,
            FaultKind::ResourcesRequested { .. } => {
                troubles.borrow_mut().requested = None;
                world.ray.touch();
            }
            FaultKind::ClockAhead { .. } => self.controllers.set_clocks(0.0),
            FaultKind::CallsSlow { .. } => world.settings.call_s = usual.call_s,
            FaultKind::ReplicaStops { replica, .. } => {
                self.controllers.kill(replica, 0.0, world);
            }
            FaultKind::ReplicaCut { replica, .. } => self.controllers.cut_off(replica, None),
            FaultKind::LeaseLost { .. }
            | FaultKind::WatchRepeats { .. }
            | FaultKind::HeadLost { .. }
            | FaultKind::NodeLost { .. }
            | FaultKind::PodFails { .. }
            | FaultKind::PodDeleted { .. }
            | FaultKind::GroupRemoved
            | FaultKind::ManifestApplied
            | FaultKind::NotesRemoved
            | FaultKind::ReplicaDies { .. }
            | FaultKind::ReplicaFrozen { .. }
            | FaultKind::ReplicasReset { .. } => {}
        }
    }

    /// Ray's own autoscaler ends with the head, since it runs in its pod.
    fn lose_head(&mut self, node: bool, again: bool) {
        let lost = losses::lose_head(&mut self.world, &self.troubles, node, again);
        self.say(format!("lost with the head: {lost:?}"));
        if !self.scene.settings.strategy.is_rayfit() {
            let working = self.controllers.working();
            self.controllers.kill(working, 0.0, &mut self.world);
        }
    }

    /// People set a field of a group, if the group is still there.
    fn set(&mut self, group: usize, field: &str, value: Value) {
        edit(&mut self.world, |cluster| {
            let group = cluster.pointer_mut(&format!("/spec/workerGroupSpecs/{group}"));
            if let Some(group) = group.and_then(Value::as_object_mut) {
                group.insert(field.to_owned(), value);
            }
        });
    }
}

/// Watchers hear of everything but the RayCluster as it once was; a RayCluster of an older version is not
/// believed. What is so now follows.
fn repeat(world: &mut World, view: &WorldView) {
    world.view = WorldView {
        cluster: world.view.cluster.clone(),
        version: world.view.version + 1,
        ..view.clone()
    };
    world.objects_changed();
}
