//! Calls with wrong answers, what meets a call on its way, and a GCS that is away, starts anew or lies.

use serde_json::{Value, json};

use crate::reconcile::{Effect, Failure, Reply};
use crate::simulate::ray::lies::GcsLie;
use crate::simulate::ray::resources::ResourceNames;
use crate::simulate::world::World;
use crate::simulate::world::log::LogEntry;
use crate::simulate::world::trouble::{Answer, CallEvent, CallKind};
use crate::snapshot::NodeId;
use crate::snapshot::gcs::{ClusterResourceState, NodeState, NodeStatus};

impl World {
    /// Makes a call of the scaler, which may get a wrong answer.
    ///
    /// # Errors
    ///
    /// What is called refuses, as the real one would, or does not answer as it should.
    pub fn call(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        self.meet(effect);
        let is_kubernetes = effect.is_kubernetes();
        let (is_done, result) = if !is_kubernetes && self.is_gcs_away() {
            (false, Err(Answer::Silence.failure(false)))
        } else if let Some((_, answer)) = self.trouble.refused.filter(|(of, _)| of.is_of(effect)) {
            (false, Err(answer.failure(is_kubernetes)))
        } else {
            self.answer(is_kubernetes, |world| world.perform(effect))
        };
        if let Err(Failure::Api(status)) = &result
            && status.code == 429
        {
            self.trouble.patience_asked = Some(status.retry_after_s.unwrap_or_default());
        }
        self.log.add(self.now, || LogEntry::Called {
            effect: Box::new(effect.clone()),
            is_done,
            result: result.clone(),
        });
        result
    }

    /// A call arrives. What was to happen at such a call happens before it is carried out.
    fn meet(&mut self, effect: &Effect) {
        let meets = |(of, _): &mut (CallKind, CallEvent)| of.is_of(effect);
        let Some((_, event)) = self.trouble.at_call.take_if(meets) else {
            return;
        };
        self.log.add(self.now, || {
            LogEntry::Fault(format!("while {effect} is on its way: {event:?}"))
        });
        let pod = pod_of(effect);
        match event {
            CallEvent::PodDeleted => pod.into_iter().for_each(|pod| self.remove_named(&pod)),
            CallEvent::PodFails => pod.into_iter().for_each(|pod| self.fail_named(&pod)),
            CallEvent::NotesRemoved => self.remove_notes(),
            CallEvent::ReplicasZero => self.set_all("replicas", |_| json!(0)),
            CallEvent::ReplicasThree => self.set_all("replicas", |_| json!(3)),
            CallEvent::ListsEmptied => self.set_all("scaleStrategy", |_| json!({})),
            CallEvent::MaximaLowered => {
                self.set_all("maxReplicas", |group| group["minReplicas"].clone());
            }
            CallEvent::GcsRestarts => self.gcs_restarted(),
        }
    }

    /// Somebody sets a field of all worker groups.
    fn set_all(&mut self, field: &str, value: impl Fn(&Value) -> Value) {
        self.edit(|cluster| {
            let groups = cluster.pointer_mut("/spec/workerGroupSpecs");
            for group in groups.and_then(Value::as_array_mut).into_iter().flatten() {
                group[field] = value(group);
            }
        });
    }

    /// Writes the hand-over record.
    ///
    /// # Errors
    ///
    /// The same as of [`World::call`].
    pub fn claim(&mut self, patch: &json_patch::Patch) -> Result<(), Failure> {
        let (_, result) = self.answer(true, |world| world.patch_cluster(patch));
        self.log.add(self.now, || LogEntry::Claimed(result.clone()));
        result
    }

    /// Makes a call, or gives the next wrong answer to it, whether it is made or not. Returns whether
    /// it was made, and the answer.
    fn answer<T>(
        &mut self,
        is_kubernetes: bool,
        call: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> (bool, Result<T, Failure>) {
        let Some(bad) = self.trouble.answers.pop_front() else {
            let result = call(self);
            return (result.is_ok(), result);
        };
        let is_done = bad.is_done && !bad.answer.refuses() && call(self).is_ok();
        (is_done, Err(bad.answer.failure(is_kubernetes)))
    }

    /// The number of what the GCS says, as of [`Ray::version`](crate::simulate::ray::Ray::version);
    /// `None` if it does not answer.
    pub fn gcs_version(&self) -> Option<u64> {
        (!self.is_gcs_away()).then_some(self.ray.version)
    }

    /// What the GCS says of the cluster; `None` if it does not answer.
    pub fn gcs_state(&self) -> Option<ClusterResourceState> {
        if self.is_gcs_away() {
            return None;
        }
        let mut state = self.ray.state(self.now);
        let strange = self.strangers.iter().map(|pod| NodeState {
            // The ids of the other Ray nodes are counted from 1, so that this one is never theirs.
            node_id: NodeId::from([0xEE; 28]).to_string(),
            instance_id: pod.metadata.name.clone(),
            ray_node_type_name: pod.metadata.labels.group.clone().unwrap_or_default(),
            status: NodeStatus::Idle,
            idle_duration_ms: 3_600_000,
            ..NodeState::default()
        });
        state.node_states.extend(strange);
        if let Some(percent) = self.trouble.told_percent {
            tell_in_part(&mut state, percent);
        }
        if let Some(lie) = self.trouble.lie {
            lie.tell(&mut state, &format!("{}-head", self.name()));
        }
        Some(state)
    }

    /// The GCS has been started anew: it knows the nodes by what they registered with, and hears
    /// of loads and demand only when it next collects them. (`gcs_resource_manager.cc`, `OnNodeAdd`.)
    pub fn gcs_restarted(&mut self) {
        let groups = &self.groups;
        let registered = |pod_group: &str, names: &mut ResourceNames| {
            let group = groups.iter().find(|group| group.name == pod_group)?;
            let amounts = group.resources.iter();
            Some(names.bundle(amounts.map(|(name, amount)| (name.as_str(), *amount))))
        };
        self.ray.forget(self.now, registered);
        self.ray_changed();
    }

    /// The GCS tells of so much of what waits, in percent and of each shape, or of all of it again: not all
    /// raylets have said yet what waits on them.
    pub fn tell_demand(&mut self, percent: Option<u32>) {
        self.trouble.told_percent = percent;
        self.ray.touch();
    }

    /// The GCS tells a lie from now on, or none any more.
    pub fn lie(&mut self, lie: Option<GcsLie>) {
        self.trouble.lie = lie;
        self.ray.touch();
    }
}

/// The pod that a call is about: the first one that it lists, where it is about the RayCluster.
fn pod_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::NotePod(patch) | Effect::ResizePod(patch) => Some(patch.pod.clone()),
        Effect::ResizeRaylet(resize) => Some(resize.pod.clone()),
        Effect::Drain(drain) => Some(drain.pod.clone()),
        Effect::PatchCluster(patch) => {
            let mut listed = patch.changes.iter().flat_map(|change| &change.deletions);
            listed.next().map(|deletion| deletion.pod.clone())
        }
        Effect::DeleteCluster(_) | Effect::Report(_) | Effect::PutError(_) => None,
    }
}

/// Leaves out a part of what waits. Of what is not left out altogether there is one at least.
fn tell_in_part(state: &mut ClusterResourceState, percent: u32) {
    for request in &mut state.pending_resource_requests {
        let told = i128::from(request.count) * i128::from(percent);
        request.count = i64::try_from((told + 99) / 100).unwrap_or(i64::MAX);
    }
    let gangs = &mut state.pending_gang_resource_requests;
    gangs.truncate((gangs.len() * percent as usize).div_ceil(100));
}
