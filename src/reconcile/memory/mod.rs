//! What a process remembers of a cluster from round to round. All of it may be lost at any time.

pub mod backoff;
pub mod reported;

use std::collections::BTreeSet;

use super::round::Round;
use super::settings::ReconcilerSettings;
use crate::reconcile::effects::done::Done;
use crate::reconcile::effects::effect::{Effect, EffectClass, EffectTarget, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::events::event::Announcements;
use crate::reconcile::memory::backoff::{FailedTry, Waits};
use crate::reconcile::memory::reported::ReportedState;
use crate::reconcile::observed::outage::Outage;
use crate::reconcile::observed::stabilisation::Stabilisation;
use crate::reconcile::recorder::EventRecorder;
use crate::snapshot::History;
use crate::snapshot::history::InstanceStatus;

/// For how long groups are patched one by one after the API server refused a patch of several.
const SPLIT_S: f64 = 300.0;

/// For how long a node that refused to be drained is not asked again: until the GCS knows that it
/// has work.
const REFUSED_DRAIN_S: f64 = 3.0;

/// A resize is tried so often before its pod is passed over.
const TRIES: u32 = 3;

/// What is remembered of a cluster.
#[derive(Debug, Clone, Default)]
pub struct RoundMemory {
    /// For the planner; the shell puts it into the next snapshot.
    pub history: History,
    /// What is left alone for a while.
    pub waits: Waits,
    /// When anything of the cluster last moved, in seconds since 1970.
    pub changed_at: f64,
    pub(super) told: ReportedState,
    teller: EventRecorder,
    split_until: f64,
    pub(super) settling: Stabilisation,
    pub(super) outage: Option<Outage>,
}

impl RoundMemory {
    /// Takes in a round and what came of its effects, whether all were tried or not; what is to
    /// be told about it. `jitter` gives numbers from 0 to 1.
    pub fn fold(
        &mut self,
        round: &Round,
        done: &[Done],
        settings: &ReconcilerSettings,
        now: f64,
        mut jitter: impl FnMut() -> f64,
    ) -> Announcements {
        self.history = round.plan.remember.clone();
        self.settling = round.settling.unwrap_or(self.settling);
        self.outage.clone_from(&round.outage);
        self.forget_what_was_not_asked(round, done);
        self.waits.forget_old(now, &settings.backoff);
        for done in done {
            match &done.result {
                Ok(reply) => self.went_well(done, *reply, now),
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
        self.teller.tell(round, done, now)
    }

    /// Groups are to be patched one by one.
    pub(super) fn splits(&self, now: f64) -> bool {
        self.split_until > now
    }

    /// The planner takes for granted that its plan was carried out; what was not is taken back.
    fn forget_what_was_not_asked(&mut self, round: &Round, done: &[Done]) {
        let done = || done.iter().filter(|done| done.result.is_ok());
        let asked: BTreeSet<&str> = done()
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
        self.history.instances.retain(|instance| {
            let group = instance.group.as_str();
            let fresh = instance.since == Some(round.at);
            match (instance.status, &instance.pod) {
                (InstanceStatus::Requested, None) if fresh => {
                    !launching.contains(group) || asked.contains(group)
                }
                (InstanceStatus::StopRequested, Some(pod)) => {
                    !draining.contains(pod.as_str()) || drained.contains(pod.as_str())
                }
                _ => true,
            }
        });
    }

    fn went_well(&mut self, done: &Done, reply: Reply, now: f64) {
        let task = done.effect.task();
        match &done.effect {
            Effect::PatchCluster(patch) => {
                for change in &patch.changes {
                    let about = EffectTarget::Group(change.group.clone());
                    self.waits.went_well(&(about, task));
                }
            }
            Effect::Report(state) => self.told.note_state(state, now),
            Effect::PutError(text) => self.told.note_error(text, now),
            Effect::NotePod(_)
            | Effect::ResizePod(_)
            | Effect::ResizeRaylet(_)
            | Effect::Drain(_) => {}
        }
        let key = (done.about.clone(), task);
        if reply == Reply::DrainRefused {
            let why = "it has work again and is not drained";
            self.waits.pause(key, now + REFUSED_DRAIN_S, why);
        } else {
            self.waits.went_well(&key);
        }
    }

    fn failed(
        &mut self,
        done: &Done,
        failure: &Failure,
        settings: &ReconcilerSettings,
        now: f64,
        jitter: f64,
    ) {
        let meaning = failure.meaning();
        let key = (self.concerned(done, meaning, now), done.effect.task());
        let failed = FailedTry {
            meaning,
            why: failure.explain(&done.effect),
            now,
            jitter,
        };
        self.waits.failed(key, &failed, &settings.backoff);
    }

    /// A pod that cannot be resized is passed over for a while, so that its demand gets another
    /// one. What may work in a moment is tried a few times before.
    fn bar(&mut self, round: &Round, done: &Done, meaning: Meaning, now: f64) {
        let EffectTarget::Pod(pod) = &done.about else {
            return;
        };
        let grows = round.plan.resizes.iter().any(|resize| resize.pod == *pod);
        let patient = match meaning {
            // An API server that is busy says nothing about the pod.
            Meaning::Stale | Meaning::Gone | Meaning::Busy { .. } => true,
            Meaning::Transient => {
                let wait = self.waits.of(&done.about, EffectClass::Resize, now);
                wait.is_none_or(|wait| wait.failures < TRIES)
            }
            Meaning::TooLarge(_) | Meaning::Refused | Meaning::Forbidden => false,
        };
        if !grows || done.effect.task() != EffectClass::Resize || patient {
            return;
        }
        let memory = self.history.resizes.entry(pod.clone()).or_default();
        memory.failures = memory.failures.saturating_add(1);
        if !matches!(meaning, Meaning::TooLarge(_)) {
            memory.failed_at = Some(now);
        }
    }

    /// Launches that were refused have failed. Of a refused patch of several groups nobody knows
    /// which of them it was.
    fn note_refused(&mut self, done: &Done, meaning: Meaning, now: f64) {
        let Effect::PatchCluster(patch) = &done.effect else {
            return;
        };
        let known = meaning == Meaning::Forbidden
            || meaning == Meaning::Refused && patch.changes.len() == 1;
        let refused = patch.changes.iter().filter(|change| change.launches > 0);
        for change in refused.filter(|_| known) {
            self.history.unavailable.insert(change.group.clone(), now);
        }
    }

    /// Whom a failure concerns. A refused patch of several groups concerns one of them: the next
    /// ones are sent for one group each, until it is found.
    fn concerned(&mut self, done: &Done, meaning: Meaning, now: f64) -> EffectTarget {
        match &done.effect {
            Effect::PatchCluster(patch) if meaning == Meaning::Refused => {
                self.split_until = now + SPLIT_S;
                match patch.changes.as_slice() {
                    [change] => EffectTarget::Group(change.group.clone()),
                    _ => EffectTarget::Group(String::new()),
                }
            }
            _ => done.about.clone(),
        }
    }
}
