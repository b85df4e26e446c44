//! A process's memory of a cluster from round to round. All of it may be lost at any time.
//!
//! In: rounds and the results of their calls. Out: what the next round knows. Invariant: a call whose result is not known
//! counts as if it may have happened.

pub mod backoff;
pub mod reported;
pub(crate) mod unobserved;

use std::collections::BTreeSet;

use super::round::Round;
use super::settings::RoundSettings;
use crate::plan::Strategy;
use crate::ray::resource::Amounts;
use crate::reconcile::effects::chain::Done;
use crate::reconcile::effects::effect::{Effect, EffectClass, EffectTarget, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::events::event::Announcements;
use crate::reconcile::memory::backoff::{SKEW_S, Waits};
use crate::reconcile::memory::reported::Reported;
use crate::reconcile::memory::unobserved::Unobserved;
use crate::reconcile::observed::outage::Outage;
use crate::reconcile::observed::stabilisation::Stabilisation;
use crate::reconcile::recorder::EventRecorder;
use crate::snapshot::autoscaling_state::AutoscalingState;
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::{History, Snapshot};

/// Seconds for which worker groups are patched one by one after the API server has refused a
/// patch of several.
const SPLIT_S: f64 = 300.0;

/// Seconds for which a Ray node that refused a drain is not asked again.
// By then the GCS reports that it has work, so that it is not planned to go.
const REFUSED_DRAIN_S: f64 = 3.0;

/// The number of resizes in a row that have to fail until their pod is passed over for a while.
const TRIES: u32 = 3;

/// The most seconds that count as passed from one look to the next.
// A clock that leaps ahead, or an API server whose clock is ahead of another one's, ends no work before its time is
// over.
const LONGEST_GAP_S: f64 = 60.0;

/// Memory of one cluster.
#[derive(Debug, Clone, Default)]
pub struct RoundMemory {
    /// The planner's history; the shell puts it into the next snapshot.
    pub history: History,
    /// The back-offs after failures.
    pub waits: Waits,
    /// The time of the last change in the cluster, in seconds since 1970.
    pub changed_at: f64,
    pub(super) reported_state: Reported<AutoscalingState>,
    pub(super) reported_error: Reported<String>,
    pub(super) unobserved: Unobserved,
    recorder: EventRecorder,
    /// The time at which the last round was taken in, in seconds since 1970.
    at: f64,
    /// The time until which worker groups are patched one by one, in seconds since 1970.
    pub(super) split_until: f64,
    pub(super) stabilisation: Stabilisation,
    pub(super) outage: Option<Outage>,
}

impl RoundMemory {
    /// Takes in a round and the results of its effects, whether all of them were tried or not, and
    /// returns what is to be announced. `jitter` gives numbers from 0 to 1.
    pub fn fold(
        &mut self,
        round: &Round,
        done: &[Done],
        settings: &RoundSettings,
        now: f64,
        mut jitter: impl FnMut() -> f64,
    ) -> Announcements {
        if now + SKEW_S < self.at.max(round.at) {
            // The clock was set back, since the last round or during this one: whatever waits for a time
            // would wait as much longer. What was announced is kept, or all that still holds would be
            // announced again.
            *self = Self {
                recorder: std::mem::take(&mut self.recorder),
                at: now,
                changed_at: now,
                ..Self::default()
            };
            return self.recorder.announce(round, done, now);
        }
        self.at = now;
        self.history = round.plan.remember.clone();
        self.stabilisation = round.stabilisation.unwrap_or(self.stabilisation);
        self.outage.clone_from(&round.outage);
        self.forget_what_was_not_asked(round, done, settings.plan.strategy);
        self.waits.forget_old(now, settings.backoff.longest_s);
        self.unobserved.note(done, now);
        let chain = |done: &'_ Done| (done.about.clone(), done.effect.class());
        let failed = done.iter().filter(|done| done.result.is_err());
        let failed: BTreeSet<(EffectTarget, EffectClass)> = failed.map(chain).collect();
        for done in done {
            match &done.result {
                Ok(reply) => self.went_well(done, *reply, failed.contains(&chain(done)), now),
                Err(failure) => {
                    self.failed(done, failure, settings, now, jitter());
                    self.note_refused(done, failure.meaning(), now);
                    self.bar(round, done, failure.meaning(), now);
                }
            }
        }
        if round.busy || done.iter().any(|done| done.effect.is_kubernetes()) {
            self.changed_at = now;
        }
        self.recorder.announce(round, done, now)
    }

    /// Forgets what was said to a GCS, and what it said, because another one is asked from now on.
    pub fn forget_gcs(&mut self) {
        self.reported_state = Reported::default();
        self.reported_error = Reported::default();
        self.stabilisation = Stabilisation::default();
        // Another GCS may never have heard of the sizes that raylets were told.
        self.unobserved.sizes.clear();
        self.waits.forget_gcs();
    }

    /// The snapshot as if the clock had gone on no further than is believed since the last look, if it has: nodes
    /// above a maximum get the time that they had.
    pub(super) fn after_leap(&self, snapshot: &Snapshot, now: f64) -> Option<Snapshot> {
        let leap_s = now - self.at - LONGEST_GAP_S;
        if self.at == 0.0 || leap_s <= 0.0 || snapshot.history.excess.is_empty() {
            return None;
        }
        let mut snapshot = snapshot.clone();
        let nodes = snapshot.history.excess.values_mut();
        nodes.for_each(|node| node.since += leap_s);
        Some(snapshot)
    }

    /// Takes in a look at a state that has not changed, so that no round was made. `busy` says
    /// whether something is pending or on its way in it.
    pub fn is_the_same(&mut self, busy: bool, now: f64) {
        self.at = self.at.max(now);
        if busy {
            self.changed_at = now;
        }
    }

    /// Takes back from the history what was planned but not done, since the planner assumes that
    /// its plan was carried out.
    fn forget_what_was_not_asked(&mut self, round: &Round, done: &[Done], strategy: Strategy) {
        let done = || done.iter().filter(|done| done.result.is_ok());
        let patched_groups: BTreeSet<&str> = done()
            .filter_map(|done| match &done.effect {
                Effect::PatchCluster(patch) => Some(&patch.changes),
                _ => None,
            })
            .flatten()
            .map(|change| change.group.as_str())
            .collect();
        let drained: BTreeSet<&str> = done()
            .filter(|done| done.result == Ok(Reply::DrainAccepted))
            .filter_map(|done| match &done.effect {
                Effect::Drain(drain) => Some(drain.pod.as_str()),
                _ => None,
            })
            .collect();
        self.history.excess.retain(|pod, node| {
            let is_asked = drained.contains(pod.as_str());
            let is_new = |at: &f64| at.total_cmp(&round.at).is_eq();
            node.stopped_at = node.stopped_at.filter(|at| is_asked || !is_new(at));
            is_asked || !is_new(&node.since)
        });
        let groups = round.plan.groups.iter();
        let launching: BTreeSet<&str> = groups
            .filter(|group| group.launch_now > 0)
            .map(|group| group.name.as_str())
            .collect();
        let draining: BTreeSet<&str> = round
            .plan
            .drains
            .iter()
            .map(|drain| drain.pod.as_str())
            .collect();
        let is_asked =
            |pod: &String| !draining.contains(pod.as_str()) || drained.contains(pod.as_str());
        self.history.told.retain(|pod, _| is_asked(pod));
        self.history.instances.retain_mut(|instance| {
            let group = instance.group.as_str();
            let fresh = instance.since == Some(round.at);
            match (instance.status, &instance.pod) {
                (InstanceStatus::Requested, None) if fresh => {
                    !launching.contains(group) || patched_groups.contains(group)
                }
                // One that was asked before drains, and is only told again.
                (InstanceStatus::StopRequested, Some(pod)) if fresh => {
                    let is_asked = is_asked(pod);
                    if !is_asked {
                        instance.status = InstanceStatus::Allocated;
                        instance.since = None;
                    }
                    // With strategy `ray` it keeps its place in the order of Ray's table.
                    is_asked || !strategy.is_rayfit()
                }
                _ => true,
            }
        });
    }

    /// Takes in a call that succeeded. `has_failed` says that another call of the same chain has
    /// not.
    fn went_well(&mut self, done: &Done, reply: Reply, has_failed: bool, now: f64) {
        let task = done.effect.class();
        match &done.effect {
            Effect::PatchCluster(patch) => {
                for change in &patch.changes {
                    // A group launches more at once after a launch that was bounded was admitted.
                    let limit = self.history.launch_limits.get_mut(&change.group);
                    if let Some(limit) = limit.filter(|limit| change.launches >= **limit) {
                        *limit = limit.saturating_mul(2);
                    }
                    let about = EffectTarget::Group(change.group.clone());
                    self.waits.went_well(&(about, task), &done.effect);
                }
            }
            Effect::Report(state) => {
                // Each report has another version.
                let state = AutoscalingState {
                    version: 0,
                    ..state.clone()
                };
                self.reported_state.note(state, now);
            }
            Effect::PutError(text) => self.reported_error.note(text.clone(), now),
            Effect::NotePod(_)
            | Effect::ResizePod(_)
            | Effect::ResizeRaylet(_)
            | Effect::Drain(_)
            | Effect::DeleteCluster { .. } => {}
        }
        let key = (done.about.clone(), task);
        if reply == Reply::DrainRefused {
            let why = "it has work again and is not drained";
            self.waits.delay(key, now, REFUSED_DRAIN_S, why);
        // A note that was written does not make up for the resize that was refused.
        } else if !has_failed {
            self.waits.went_well(&key, &done.effect);
        }
    }

    fn failed(
        &mut self,
        done: &Done,
        failure: &Failure,
        settings: &RoundSettings,
        now: f64,
        jitter: f64,
    ) {
        // One of several worker groups is the cause when their patch is refused.
        let concerned = match &done.effect {
            Effect::PatchCluster(patch)
                if failure.meaning() == Meaning::Refused && !patch.changes.is_empty() =>
            {
                // The next patches change one group each, until the cause is found.
                self.split_until = now + SPLIT_S;
                match patch.changes.as_slice() {
                    [change] => EffectTarget::Group(change.group.clone()),
                    // No worker group has an empty name, so this back-off holds up none of them.
                    _ => EffectTarget::Group(String::new()),
                }
            }
            _ => done.about.clone(),
        };
        let key = (concerned, done.effect.class());
        let (effect, retry) = (&done.effect, settings.backoff);
        self.waits.failed(key, effect, failure, retry, now, jitter);
    }

    /// Passes over a pod that cannot be resized for a while, so that its demand gets another pod. A
    /// failure that may not happen again passes the pod over only after [`TRIES`] attempts.
    fn bar(&mut self, round: &Round, done: &Done, meaning: Meaning, now: f64) {
        let EffectTarget::Pod(pod) = &done.about else {
            return;
        };
        let resize = round.plan.resizes.iter().find(|resize| resize.pod == *pod);
        let patient = match meaning {
            // An API server that is overloaded says nothing about the pod.
            Meaning::Stale | Meaning::Gone | Meaning::Busy { .. } => true,
            Meaning::Transient => {
                let wait = self.waits.of(&done.about, EffectClass::Resize, now);
                wait.is_none_or(|wait| wait.failures < TRIES)
            }
            Meaning::TooLarge(_) | Meaning::Refused | Meaning::Forbidden => false,
        };
        let Some(resize) = resize else { return };
        if done.effect.class() != EffectClass::Resize || patient {
            return;
        }
        let memory = self.history.resizes.entry(pod.clone()).or_default();
        if resize.only_shrinks() {
            memory.shrink_failures = memory.shrink_failures.and_one(now);
            return;
        }
        memory.failures = memory.failures.saturating_add(1);
        // If the API server says what the Kubernetes node can give, the note has it, and it bounds
        // the next try instead of a wait. It does not on a node on which no size helps.
        let bounds_next_try =
            matches!(meaning, Meaning::TooLarge(at_most) if at_most != Amounts::default());
        if !bounds_next_try {
            memory.failed_at = Some(now);
        }
    }

    /// Records launches that were refused as failed.
    fn note_refused(&mut self, done: &Done, meaning: Meaning, now: f64) {
        let Effect::PatchCluster(patch) = &done.effect else {
            return;
        };
        // A permission that is missing is missing for all groups of the patch.
        let is_cause = meaning == Meaning::Forbidden
            // Of several groups in a patch it is not known which one was the cause.
            || meaning == Meaning::Refused && patch.changes.len() == 1;
        let refused = patch.changes.iter().filter(|change| change.launches > 0);
        for change in refused.filter(|_| is_cause) {
            self.history.unavailable.insert(change.group.clone(), now);
            // A part of the launches may be admitted if so many at once are refused.
            let limit = (change.launches / 2).max(1);
            (self.history.launch_limits).insert(change.group.clone(), limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::PodResize;
    use crate::reconcile::effects::effect::PodPatch;
    use crate::reconcile::effects::failure::ApiStatus;

    #[test]
    fn what_was_remembered_by_a_clock_that_was_set_back_is_forgotten() {
        let mut round = Round::default();
        let remembered = &mut round.plan.remember.unavailable;
        remembered.insert("cpu".to_owned(), 5000.0);
        let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
        let mut known = |now| {
            memory.fold(&round, &[], &settings, now, || 0.5);
            !memory.history.unavailable.is_empty()
        };
        assert!(known(5000.0));
        assert!(known(4999.5), "a hair's breadth is no jump");
        assert!(!known(4000.0));
        assert!(known(4001.0), "it goes on");
    }

    #[test]
    fn another_gcs_is_told_anew_and_has_not_failed_yet() {
        let mut memory = RoundMemory::default();
        let state = AutoscalingState::default();
        let report = Done {
            about: EffectTarget::Cluster,
            effect: Effect::Report(AutoscalingState {
                version: 1000,
                ..state.clone()
            }),
            result: Ok(Reply::Ok),
        };
        memory.went_well(&report, Reply::Ok, false, 1.0);
        let wait = |class| (EffectTarget::Cluster, class);
        for class in [EffectClass::Report, EffectClass::Replicas] {
            memory.waits.delay(wait(class), 1.0, 60.0, "it failed");
        }
        assert!(!memory.reported_state.wants(&state, 2.0));
        memory.forget_gcs();
        assert!(memory.reported_state.wants(&state, 2.0));
        let waits = |class| {
            memory
                .waits
                .of(&EffectTarget::Cluster, class, 2.0)
                .is_some()
        };
        assert!(!waits(EffectClass::Report));
        assert!(waits(EffectClass::Replicas), "it is the same API server");
    }

    #[test]
    fn a_pod_that_no_size_helps_is_passed_over_for_a_while() {
        let failed_at = |message: &str, cause: &str| {
            let about = EffectTarget::Pod("w".to_owned());
            let resize = PodResize {
                pod: "w".to_owned(),
                cpu_milli: 2000,
                memory_bytes: 1 << 30,
                cpu_milli_now: 1000,
                memory_bytes_now: 1 << 30,
                raylet_first: false,
                spare_seconds: None,
                memory_reason: None,
                demand: None,
            };
            let mut round = Round::default();
            round.plan.resizes.push(resize);
            let patch = PodPatch {
                pod: "w".to_owned(),
                body: json!({}),
            };
            let refused = ApiStatus {
                code: 403,
                message: message.to_owned(),
                causes: vec![cause.to_owned()],
                ..ApiStatus::default()
            };
            let done = Done {
                about,
                effect: Effect::ResizePod(patch),
                result: Err(Failure::Api(refused)),
            };
            let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
            memory.fold(&round, &[done], &settings, 100.0, || 0.5);
            memory
                .history
                .resizes
                .get("w")
                .and_then(|pod| pod.failed_at)
        };
        let windows = "pod resize is only supported on linux nodes";
        assert_eq!(failed_at(windows, "UnsupportedPlatform"), Some(100.0));
        let full = "node didn't have enough allocatable resources: cpu, requested: 2000, \
                    allocatable: 1500";
        assert_eq!(
            failed_at(full, "NodeCapacity"),
            None,
            "1500 bound the next try"
        );
    }

    #[test]
    fn what_was_decided_by_a_clock_that_was_set_back_meanwhile_is_forgotten() {
        let round = Round {
            at: 5000.0,
            ..Round::default()
        };
        let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
        memory.split_until = 9000.0;
        memory.fold(&round, &[], &settings, 4000.0, || 0.5);
        assert!(memory.split_until <= 4000.0);
    }

    #[test]
    fn what_a_ray_node_could_not_be_told_is_told_again() {
        use crate::plan::{NodeDrain, RemovalCause};
        use crate::reconcile::effects::drain;

        let planned = NodeDrain {
            pod: "w".to_owned(),
            group: "cpu".to_owned(),
            node_id: "ab".repeat(28),
            cause: RemovalCause::NodeLeaves,
            idle_ms: 0,
            stop_at: None,
            departure: None,
        };
        let effect = Effect::Drain(drain::of(&planned, 100.0).unwrap());
        let mut round = Round::default();
        round.plan.drains.push(planned);
        let told = round.plan.remember.told.entry("w".to_owned());
        told.or_default().gone_at = 140.0;
        let knows = |result| {
            let done = Done {
                about: EffectTarget::Pod("w".to_owned()),
                effect: effect.clone(),
                result,
            };
            let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
            memory.fold(&round, &[done], &settings, 100.0, || 0.5);
            !memory.history.told.is_empty()
        };
        assert!(knows(Ok(Reply::DrainAccepted)));
        assert!(!knows(Err(Failure::NoAnswer(String::new()))));
    }

    #[test]
    fn a_clock_that_leaps_ahead_leaves_nodes_above_a_maximum_their_time() {
        let snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {"metadata": {"name": "demo"}, "spec": {}}, "pods": [], "gcs": {},
            "history": {"excess": {"w": {"since": 1000.0}}},
        }))
        .unwrap();
        let memory = RoundMemory {
            at: 1000.0,
            ..RoundMemory::default()
        };
        let since = |now| {
            let delayed = memory.after_leap(&snapshot, now)?;
            Some(delayed.history.excess["w"].since)
        };
        assert_eq!(since(1060.0), None, "a minute is no leap");
        assert_eq!(since(4060.0), Some(4000.0));
        let (fresh, now) = (RoundMemory::default(), 4060.0);
        assert!(
            fresh.after_leap(&snapshot, now).is_none(),
            "it knows no other time"
        );
    }

    /// The wait grows with each resize that fails, though a note is written in the same round.
    #[test]
    fn a_note_that_was_written_does_not_make_up_for_a_resize_that_failed() {
        let patch = PodPatch {
            pod: "w".to_owned(),
            body: json!({}),
        };
        let (note, resize) = (Effect::NotePod(patch.clone()), Effect::ResizePod(patch));
        let failure = Failure::NoAnswer(String::new());
        let done = [
            (note.clone(), Ok(Reply::Ok)),
            (resize, Err(failure)),
            (note, Ok(Reply::Ok)),
        ];
        let about = EffectTarget::Pod("w".to_owned());
        let done = done.map(|(effect, result)| Done {
            about: about.clone(),
            effect,
            result,
        });
        let mut memory = RoundMemory::default();
        for failures in 1..=TRIES {
            let (round, settings) = (Round::default(), RoundSettings::default());
            memory.fold(&round, &done, &settings, 100.0, || 0.5);
            let wait = memory.waits.of(&about, EffectClass::Resize, 100.0);
            assert_eq!(wait.map(|wait| wait.failures), Some(failures));
        }
    }
}
