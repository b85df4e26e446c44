//! What is wrong with a world: calls that are not answered as they should be, watches that stop,
//! kubelets that refuse.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use rayfit_core::facts::Facts;
use rayfit_core::judge::judge;
use rayfit_core::plan::check::{self, Violation};
use rayfit_core::policy::Settings;
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::reconcile::Effect;
use rayfit_core::reconcile::effects::failure::{ApiStatus, Failure, GcsKind};
use rayfit_core::reconcile::{Reply, Round};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::objects::{DeletionCause, SimulatedPod};
use rayfit_core::simulate::world::queue::WorldEvent;
use rayfit_core::simulate::world::{Disturbance, World, WorldView, WrongAnswer};
use rayfit_core::snapshot::cluster_object::ClusterObject;
use rayfit_core::snapshot::gcs::{
    ClusterResourceConstraint, ClusterResourceState, LabelSelector, NodeState, NodeStatus,
    ResourceRequest, ResourceRequestByCount,
};
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::{NodeId, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers;
use super::head::LostHead;
use super::log::LogEntry;
use super::plan::Cut;
use super::replicas::trust::ProcessState;
use crate::faults::lies::GcsLie;

/// The number of the event by which watchers get the changes of objects of which they hear later than of
/// others.
pub(crate) const WATCHED_LATE: usize = usize::MAX;

/// What is wrong with a world now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble {
    /// How the next calls of the scaler are answered, if not as they should be.
    pub(crate) answers: VecDeque<BadAnswer>,
    /// For how many seconds the API server has just asked for patience, if it has.
    pub(crate) patience_asked: Option<f64>,
    /// Whether the GCS does not answer.
    pub(crate) is_gcs_away: bool,
    /// How all calls of a kind are answered.
    pub(crate) refused: Option<(CallKind, Answer)>,
    /// The objects of which watchers hear nothing.
    pub(crate) lost: Option<LostWatches>,
    /// What kubelets say to every resize.
    pub(crate) resizes: Option<ResizeRefusal>,
    /// Whether the webhook checks changes of the RayCluster.
    pub(crate) is_judged: bool,
    /// The cores that the pods of the cluster's namespace may request, where there is a quota.
    pub(crate) quota: Option<i64>,
    /// The CPUs of each bundle that a driver has asked for with `request_resources()`, and their count.
    pub(crate) requested: Option<(f64, i64)>,
    /// What follows from the loss of the head.
    pub(crate) lost_head: LostHead,
    /// What was done in the world and nobody has taken yet, in the order of time.
    log: VecDeque<(Moment, LogEntry)>,
    /// The groups of which deletions of pods, and starts of pods, begin to hang.
    pub(crate) hanging: [Option<usize>; 2],
    /// What watchers hear of some objects later than of others, and when.
    late_views: VecDeque<(Moment, WorldView)>,
    /// The requests to the API server that have to pass a gate first, by the events by which they
    /// arrive; none where there is no gate.
    pub(crate) outgoing: Option<Vec<WorldEvent>>,
    /// The lie that the GCS tells, if it tells one.
    pub(crate) lie: Option<GcsLie>,
    /// The objects of which watchers hear later than of others, and by how many seconds.
    pub(crate) slow: Option<(LostWatches, f64)>,
    /// What happens when the next call of a kind arrives, just before it is carried out.
    pub(crate) at_call: Option<(CallKind, CallEvent)>,
    /// The RayCluster as reads show it, where they are out of date.
    pub(crate) reads: Option<Rc<ClusterObject>>,
    /// How much of what waits the GCS tells of, in percent, if not all.
    pub(crate) told_percent: Option<u32>,
    /// Pods that carry the cluster's labels and are somebody else's.
    pub(crate) strangers: Vec<PodObject>,
    /// What the process that acts now may do, and reaches.
    pub(crate) process: ProcessState,
    /// The rules that plans broke.
    pub(crate) broken: Vec<Violation>,
}

/// The same, as the world asks for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Troubles(Rc<RefCell<Trouble>>);

impl Deref for Troubles {
    type Target = RefCell<Trouble>;

    fn deref(&self) -> &RefCell<Trouble> {
        &self.0
    }
}

impl Troubles {
    /// Troubles of a world, of which there are none yet.
    pub(crate) fn of(world: &mut World) -> Self {
        let troubles = Self::default();
        world.disturbance = Rc::new(troubles.clone());
        troubles
    }

    /// Watchers hear again of everything.
    pub(crate) fn watch_again(&self, world: &mut World) {
        let mut trouble = self.borrow_mut();
        trouble.lost = None;
        trouble.slow = None;
        trouble.late_views.clear();
        drop(trouble);
        world.is_watched = false;
        world.objects_changed();
    }

    /// Watchers are about to hear of changes. Returns whether they do; what lags they hear later.
    pub(crate) fn watched(&self, world: &mut World) -> bool {
        let trouble = self.borrow_mut();
        // The world adds no such event until watchers hear again.
        if trouble.lost == Some(LostWatches::All) {
            return false;
        }
        if let Some((_, lag_s)) = trouble.slow {
            drop(trouble);
            let (at, present) = (world.now.plus(lag_s), world.stored());
            self.borrow_mut().late_views.push_back((at, present));
            world.at(at, WorldEvent::Outside(WATCHED_LATE));
        }
        true
    }

    /// What was to happen at a call that arrives happens before it is carried out.
    pub(crate) fn meet(&self, effect: &Effect, world: &mut World) {
        let meets = |(of, _): &mut (CallKind, CallEvent)| of.is_of(effect);
        let event = self.borrow_mut().at_call.take_if(meets);
        if let Some((_, event)) = event {
            answers::meet(event, effect, self, world);
        }
    }

    /// Watchers of the objects that lag hear what was so then.
    pub(crate) fn watched_late(&self, world: &mut World) {
        let mut trouble = self.borrow_mut();
        let mut due = None;
        while let Some((at, _)) = trouble.late_views.front()
            && *at <= world.now
        {
            due = trouble.late_views.pop_front();
        }
        let lost = trouble.lost;
        let (Some((_, then)), Some((slow, _))) = (due, trouble.slow) else {
            return;
        };
        let hears =
            |of| slow.includes(of) && !lost.is_some_and(|which: LostWatches| which.includes(of));
        let view = trouble.merged(&world.view, then, hears);
        drop(trouble);
        world.set_view(view);
    }

    /// Adds an entry to the log.
    pub(crate) fn log(&self, at: Moment, entry: LogEntry) {
        self.borrow_mut().log.push_back((at, entry));
    }

    /// Takes the oldest entry of the log.
    pub(crate) fn take_entry(&self) -> Option<(Moment, LogEntry)> {
        self.borrow_mut().log.pop_front()
    }

    /// Drivers submit again what was lost with the head.
    pub(crate) fn drivers_return(&self, world: &mut World) {
        let mut head = self.borrow().lost_head;
        head.drivers_return(world);
        self.borrow_mut().lost_head = head;
    }

    /// The GCS tells of so much of what waits, in percent and of each shape, or of all of it again: not all
    /// raylets have said yet what waits on them.
    pub(crate) fn tell_demand(&self, percent: Option<u32>, world: &mut World) {
        self.borrow_mut().told_percent = percent;
        world.ray.touch();
    }

    /// The GCS tells a lie from now on, or none any more.
    pub(crate) fn lie(&self, lie: Option<GcsLie>, world: &mut World) {
        self.borrow_mut().lie = lie;
        world.ray.touch();
    }

    /// From now on reads of the RayCluster show what is so now, whatever changes, or again what is so: an API
    /// server whose cache stands still, while watches go on with another one.
    pub(crate) fn hold_reads(&self, are_held: bool, world: &World) {
        self.borrow_mut().reads = are_held.then(|| world.stored().cluster);
    }
}

impl Trouble {
    /// What watchers have once they hear of the stored objects that are meant. A RayCluster of an older
    /// version is not believed.
    fn merged(
        &self,
        before: &WorldView,
        stored: WorldView,
        hears: impl Fn(WatchedKind) -> bool,
    ) -> WorldView {
        let mut view = before.clone();
        if hears(WatchedKind::RayCluster) && version(&stored.cluster) >= version(&before.cluster) {
            view.cluster = stored.cluster;
        }
        if hears(WatchedKind::Pods) {
            let own = stored.pods.iter();
            let is_strange = |pod: &PodObject| {
                let mut strangers = self.strangers.iter();
                strangers.any(|one| one.metadata.uid == pod.metadata.uid)
            };
            let own = own.filter(|pod| !is_strange(pod));
            view.pods = Rc::new(self.strangers.iter().chain(own).cloned().collect());
            view.loads = stored.loads;
        }
        if hears(WatchedKind::Nodes) {
            view.nodes = stored.nodes;
        }
        view
    }
}

/// The version of a RayCluster. That of a world is a number.
fn version(of: &ClusterObject) -> Option<u64> {
    let version = of.object().pointer("/metadata/resourceVersion")?;
    version.as_str()?.parse().ok()
}

impl Trouble {
    /// The wrong answer to the next call, whoever makes it.
    fn wrong_answer(&mut self, effect: Option<&Effect>) -> Option<WrongAnswer> {
        let trouble = self;
        let is_kubernetes = effect.is_none_or(Effect::is_kubernetes);
        let refused = trouble.refused.zip(effect);
        if let Some(((_, answer), _)) = refused.filter(|((of, _), effect)| of.is_of(effect)) {
            let failure = answer.failure(is_kubernetes);
            return Some(WrongAnswer {
                failure,
                is_done: false,
            });
        }
        let bad = trouble.answers.pop_front()?;
        Some(WrongAnswer {
            failure: bad.answer.failure(is_kubernetes),
            is_done: bad.is_done && !bad.answer.refuses(),
        })
    }
}

impl Disturbance for Troubles {
    fn answer(&self, effect: Option<&Effect>) -> Option<WrongAnswer> {
        let mut trouble = self.borrow_mut();
        let Some(cut) = trouble.process.cut else {
            return trouble.wrong_answer(effect);
        };
        let is_done = match cut {
            Cut::Requests => false,
            Cut::Answers => (trouble.wrong_answer(effect)).is_none_or(|wrong| wrong.is_done),
        };
        Some(WrongAnswer {
            failure: Failure::NoAnswer("played: cut off".to_owned()),
            is_done,
        })
    }

    fn fence(&self, now: Moment) -> Option<Failure> {
        self.borrow().process.trust.refusal(now)
    }

    fn is_cut_off(&self) -> bool {
        self.borrow().process.cut.is_some()
    }

    fn decided(&self, snapshot: &Snapshot, round: &Round) {
        // Changes that are barred show as skipped for long.
        if round.skipped.iter().any(|skipped| skipped.lasting) {
            let broken = check::check(snapshot, &round.plan);
            self.borrow_mut().broken.extend(broken);
        }
    }

    fn called(&self, now: Moment, effect: &Effect, is_done: bool, result: &Result<Reply, Failure>) {
        // A request that is lost is not seen by anybody else.
        if self.borrow().process.cut == Some(Cut::Requests) {
            return;
        }
        if let Err(Failure::Api(status)) = result
            && status.code == 429
        {
            self.borrow_mut().patience_asked = Some(status.retry_after_s.unwrap_or_default());
        }
        let (effect, result) = (Box::new(effect.clone()), result.clone());
        self.log(
            now,
            LogEntry::Called {
                effect,
                is_done,
                result,
            },
        );
    }

    fn claimed(&self, now: Moment, result: &Result<(), Failure>) {
        if self.borrow().process.cut == Some(Cut::Requests) {
            return;
        }
        self.log(now, LogEntry::Claimed(result.clone()));
    }

    fn denial(&self, now: Moment, stored: &Value, changed: &Value, user: &str) -> Option<String> {
        if !self.borrow().is_judged {
            return None;
        }
        let object = RayObject::of_kind(Kind::RayCluster, changed.as_object()?);
        let old = RayObject::of_kind(Kind::RayCluster, stored.as_object()?);
        let (facts, settings) = (Facts::default(), Settings::default());
        let verdict = judge(&object, Some(&old), Some(user), &facts, &settings);
        let denied = verdict.denied.first()?;
        let why = format!("{} at {}: {}", denied.rule, denied.path, denied.problem);
        let (user, said) = (user.to_owned(), why.clone());
        self.log(now, LogEntry::Denied { user, why: said });
        Some(why)
    }

    fn quota_left(&self, world: &World) -> Option<Quantity> {
        let cores = self.borrow().quota?;
        // A quota does not count pods that have ended. (Kubernetes,
        // `quota/v1/evaluator/core/pods.go`, `QuotaV1Pod`.)
        let pods = world.own_pods().map(|pod| &world.machines.pods[pod]);
        let counted = pods.filter(|pod| !pod.has_ended());
        let used = counted.map(SimulatedPod::spec_requests);
        let used = used.fold(Amounts::default(), Amounts::plus);
        Quantity::from_units(cores).checked_sub(used.cpu.unwrap_or_default())
    }

    fn holds(&self, event: WorldEvent) -> bool {
        let mut trouble = self.borrow_mut();
        let outgoing = trouble.outgoing.as_mut();
        outgoing.map(|outgoing| outgoing.push(event)).is_some()
    }

    fn is_gcs_away(&self) -> bool {
        let trouble = self.borrow();
        trouble.is_gcs_away || trouble.lost_head.is_gone()
    }

    fn falsify(&self, state: &mut ClusterResourceState, head: &str) {
        let trouble = self.borrow();
        let strange = trouble.strangers.iter().map(|pod| NodeState {
            // The ids of the other Ray nodes are counted from 1, so that this one is never theirs.
            node_id: NodeId::from([0xEE; 28]).to_string(),
            instance_id: pod.metadata.name.clone(),
            ray_node_type_name: pod.metadata.labels.group.clone().unwrap_or_default(),
            status: NodeStatus::Idle,
            idle_duration_ms: 3_600_000,
            ..NodeState::default()
        });
        state.node_states.extend(strange);
        if let Some((cpu, count)) = trouble.requested {
            let request = ResourceRequest {
                resources_bundle: [("CPU".to_owned(), cpu)].into(),
                label_selectors: vec![LabelSelector::default()],
                ..ResourceRequest::default()
            };
            let resource_requests = vec![ResourceRequestByCount { request, count }];
            let constraints = &mut state.cluster_resource_constraints;
            constraints.push(ClusterResourceConstraint { resource_requests });
        }
        if let Some(percent) = trouble.told_percent {
            answers::tell_in_part(state, percent);
        }
        if let Some(lie) = trouble.lie {
            lie.tell(state, head);
        }
    }

    fn show(&self, before: &WorldView, stored: WorldView) -> WorldView {
        let trouble = self.borrow();
        let slow = trouble.slow.map(|(which, _)| which);
        let missed = || trouble.lost.into_iter().chain(slow);
        trouble.merged(before, stored, |of| {
            !missed().any(|which| which.includes(of))
        })
    }

    fn answers_read(&self, world: &mut World) -> bool {
        if self.is_cut_off() {
            return true;
        }
        let Some(shown) = self.borrow().reads.clone() else {
            return false;
        };
        if version(&shown) > version(&world.view.cluster) {
            let view = WorldView {
                cluster: shown,
                ..world.view.clone()
            };
            world.set_view(view);
        }
        true
    }

    fn resize_refusal(&self) -> Option<&'static str> {
        Some(match self.borrow().resizes? {
            ResizeRefusal::Deferred => "Deferred",
            ResizeRefusal::Infeasible => "Infeasible",
        })
    }

    fn pod_deleted(&self, world: &World, pod: usize, cause: DeletionCause) {
        let name = world.machines.pods[pod].name().to_owned();
        let node = world.ray.node_of(pod);
        let jobs = node.map_or(0, |node| world.ray.nodes[node].running);
        self.log(world.now, LogEntry::Deleted { name, cause, jobs });
    }

    fn pod_ended(&self, world: &mut World, pod: usize) {
        let mut head = self.borrow().lost_head;
        head.pod_ended(world, pod);
        let mut trouble = self.borrow_mut();
        trouble.lost_head = head;
        if world.machines.pods[pod].is_head {
            // What a driver has asked for is in the memory of the GCS alone.
            trouble.requested = None;
        }
    }

    fn head_joined(&self, world: &mut World) {
        let mut head = self.borrow().lost_head;
        head.head_joined(world);
        self.borrow_mut().lost_head = head;
    }

    fn memory_killed(&self, now: Moment, pod: &str) {
        let pod = pod.to_owned();
        self.log(now, LogEntry::MemoryKill { pod });
    }

    fn tasks_failed(&self, world: &World, pod: &str, tasks: &[usize]) {
        let jobs = tasks.iter().map(|job| &world.ray.jobs.all[*job]);
        let waited = jobs.filter_map(|job| Some(world.now.since(job.ready?)));
        let entry = LogEntry::TasksFailed {
            pod: pod.to_owned(),
            tasks: tasks.len(),
            waited_s: waited.fold(0.0, f64::max),
        };
        self.log(world.now, entry);
    }
}

/// The kinds of watched objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchedKind {
    /// The RayCluster.
    RayCluster,
    /// Its pods.
    Pods,
    /// The Kubernetes nodes.
    Nodes,
}

/// A kubelet's refusal of a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ResizeRefusal {
    /// The node has no room for it now.
    Deferred,
    /// The node can never hold it.
    Infeasible,
}

/// What happens at the worst moment: when a call is on its way that was decided on before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CallEvent {
    /// People delete the pod that the call is about.
    PodDeleted,
    /// The containers of that pod end with an error.
    PodFails,
    /// People remove the notes of all pods.
    NotesRemoved,
    /// A tool writes 0 `replicas` of all groups.
    ReplicasZero,
    /// A tool writes 3 `replicas` of all groups.
    ReplicasThree,
    /// A tool empties the lists of pods to delete.
    ListsEmptied,
    /// People let all groups have no more replicas than their minima.
    MaximaLowered,
    /// The GCS starts anew, and has forgotten loads, demand and sizes.
    GcsRestarts,
}

impl CallEvent {
    /// All events that can meet a call.
    pub(crate) const ALL: [Self; 8] = [
        Self::PodDeleted,
        Self::PodFails,
        Self::NotesRemoved,
        Self::ReplicasZero,
        Self::ReplicasThree,
        Self::ListsEmptied,
        Self::MaximaLowered,
        Self::GcsRestarts,
    ];
}

/// Objects that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum LostWatches {
    /// All watched objects.
    All,
    /// The RayCluster.
    RayCluster,
    /// Its pods.
    Pods,
    /// The Kubernetes nodes.
    Nodes,
}

impl LostWatches {
    /// Whether objects of a kind are among them.
    fn includes(self, of: WatchedKind) -> bool {
        match self {
            Self::All => true,
            Self::RayCluster => of == WatchedKind::RayCluster,
            Self::Pods => of == WatchedKind::Pods,
            Self::Nodes => of == WatchedKind::Nodes,
        }
    }
}

/// Calls of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CallKind {
    /// Patches of the RayCluster.
    PatchCluster,
    /// Notes on pods.
    NotePod,
    /// Resizes of pods.
    ResizePod,
    /// Resizes of raylets.
    ResizeRaylet,
    /// Drains.
    Drain,
}

impl CallKind {
    /// All kinds of calls.
    pub(crate) const ALL: [Self; 5] = [
        Self::PatchCluster,
        Self::NotePod,
        Self::ResizePod,
        Self::ResizeRaylet,
        Self::Drain,
    ];

    /// Whether an effect is such a call.
    pub(crate) fn is_of(self, effect: &Effect) -> bool {
        matches!(
            (self, effect),
            (Self::PatchCluster, Effect::PatchCluster(_))
                | (Self::NotePod, Effect::NotePod(_))
                | (Self::ResizePod, Effect::ResizePod(_))
                | (Self::ResizeRaylet, Effect::ResizeRaylet(_))
                | (Self::Drain, Effect::Drain(_))
        )
    }
}

/// A call that is not answered as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BadAnswer {
    /// The answer.
    pub(crate) answer: Answer,
    /// Whether the call is carried out. A call that is refused is not.
    pub(crate) is_done: bool,
}

/// What the API server or the GCS answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answer {
    /// HTTP 409: a conflict.
    Conflict,
    /// HTTP 422 of a validation.
    Invalid,
    /// HTTP 403 of a quota.
    QuotaExceeded,
    /// HTTP 429 with `Retry-After`.
    TooManyRequests,
    /// HTTP 500.
    InternalError,
    /// HTTP 503.
    Unavailable,
    /// No answer at all.
    Silence,
}

impl Answer {
    /// Whether the answer says that the call was not carried out.
    pub(crate) fn refuses(self) -> bool {
        matches!(
            self,
            Self::Conflict | Self::Invalid | Self::QuotaExceeded | Self::TooManyRequests
        )
    }

    /// The failure that the scaler gets to know.
    pub(crate) fn failure(self, is_kubernetes: bool) -> Failure {
        if !is_kubernetes {
            return Failure::Gcs {
                kind: GcsKind::Unreachable,
                message: "played: deadline exceeded".to_owned(),
            };
        }
        let (code, message, causes, retry_after_s) = match self {
            Self::Conflict => (409, "played: the object has been modified", vec![], None),
            // With a cause, by which the refusal is told from a JSON patch whose test fails.
            Self::Invalid => (
                422,
                "played: a webhook denied it",
                vec!["FieldValueInvalid".to_owned()],
                None,
            ),
            Self::QuotaExceeded => (403, "played: exceeded quota", vec![], None),
            Self::TooManyRequests => (429, "played: too many requests", vec![], Some(2.0)),
            Self::InternalError => (500, "played: internal error", vec![], None),
            Self::Unavailable => (503, "played: unavailable", vec![], None),
            Self::Silence => return Failure::NoAnswer("played: no answer".to_owned()),
        };
        Failure::Api(ApiStatus {
            code,
            message: message.to_owned(),
            causes,
            retry_after_s,
            ..ApiStatus::default()
        })
    }
}
