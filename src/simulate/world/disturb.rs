//! Disturbances: calls with wrong answers, a GCS that starts anew, pods and nodes that are lost,
//! objects that people change.

use serde_json::{Value, json};

use super::log::LogEntry;
use super::machines::Notice;
use super::objects::SimulatedPod;
use super::state::World;
use super::trouble::{Answer, CallEvent, CallKind};
use crate::reconcile::{Effect, Failure, Reply};
use crate::simulate::ray::lies::GcsLie;
use crate::simulate::ray::resources::ResourceNames;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::NodeId;
use crate::snapshot::amounts::Amounts;
use crate::snapshot::gcs::{ClusterResourceState, NodeState, NodeStatus};

/// Who changes objects by hand.
const PEOPLE: &str = "people";

impl World {
    /// Makes a call of the scaler, which may get a wrong answer.
    ///
    /// # Errors
    ///
    /// What is called refuses, as the real one would, or does not answer as it should.
    pub fn call(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        self.meet(effect);
        let is_kubernetes = effect.is_kubernetes();
        let (is_done, result) = if !is_kubernetes && self.trouble.is_gcs_away {
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
        self.trouble.has_met_call = true;
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
        (!self.trouble.is_gcs_away).then_some(self.ray.version)
    }

    /// What the GCS says of the cluster; `None` if it does not answer.
    pub fn gcs_state(&self) -> Option<ClusterResourceState> {
        if self.trouble.is_gcs_away {
            return None;
        }
        let mut state = self.ray.state(self.now);
        let strange = self.strangers.iter().map(|pod| NodeState {
            node_id: NodeId::from([0xEE; 28]).to_string(),
            instance_id: pod.metadata.name.clone(),
            ray_node_type_name: pod.metadata.labels.group.clone().unwrap_or_default(),
            status: NodeStatus::Idle,
            idle_duration_ms: 3_600_000,
            ..NodeState::default()
        });
        state.node_states.extend(strange);
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

    /// The GCS tells a lie from now on, or none any more.
    pub fn lie(&mut self, lie: Option<GcsLie>) {
        self.trouble.lie = lie;
        self.ray.touch();
    }

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
    fn remove_named(&mut self, name: &str) {
        if let Some(number) = self
            .pod_named(name)
            .filter(|pod| !self.machines.pods[*pod].is_head)
        {
            self.delete_pod(number);
        }
    }

    /// The containers of the pod of a name end with an error, if they run.
    fn fail_named(&mut self, name: &str) {
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
        self.machines.nodes[node].removed = Some(self.now);
        for pod in self.machines.bound_to(node) {
            self.tell(self.machines.pods[pod].cluster, Notice::Gone(pod));
        }
        self.nodes_changed();
        Some(self.machines.nodes[node].name.clone())
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

    /// People delete the head pod, and Ray with everything that it knows.
    pub fn lose_head(&mut self) {
        let head = self.own().find(|pod| self.machines.pods[*pod].is_head);
        if let Some(head) = head {
            self.delete_pod(head);
        }
    }

    /// The head pod is gone. Workers end when they have looked for it in vain.
    pub(super) fn head_gone(&mut self) {
        self.trouble.is_gcs_away = true;
        self.ray.end_head();
        let running = |pod: &usize| self.machines.pods[*pod].phase() == "Running";
        let running: Vec<usize> = self.own().filter(running).collect();
        for worker in running {
            self.after(self.settings.reconnect_s, WorldEvent::PodEnds(worker));
        }
        self.ray_changed();
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

/// Picks one of several: any number `pick` gives one, where there are any.
fn picked(of: impl Iterator<Item = usize>, pick: usize) -> Option<usize> {
    let there: Vec<usize> = of.collect();
    there.get(pick.checked_rem(there.len())?).copied()
}
