//! The end of a look: the round is remembered, and the time of the next look is set.

use crate::reconcile::effects::done::Done;
use crate::reconcile::effects::failure::Failure;
use crate::reconcile::events::event::Announcements;
use crate::reconcile::look::state::LookState;
use crate::reconcile::ownership::eligibility::Ineligible;
use crate::reconcile::round::Round;
use crate::snapshot::Snapshot;

/// The time of the next look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LookEnd {
    /// After so many seconds, or when something changes.
    After(f64),
    /// At the next change.
    UntilChanged,
    /// As [`LookState::interval_s`] says for a cluster that is busy or not.
    Paced {
        /// Whether something is pending or on its way.
        busy: bool,
    },
}

/// The reason why a look ended where it did.
#[derive(Debug, Clone, PartialEq)]
pub enum LookReason {
    /// The first list of pods is incomplete, or the policies are not known.
    NotListed,
    /// There is no RayCluster.
    Gone,
    /// The cluster is not to be scaled by this process.
    NotOurs(Ineligible),
    /// Nothing is to be done about its hand-over record.
    NoRecord,
    /// The hand-over has to wait, for this reason.
    Waits(String),
    /// The hand-over record was written. The next look finds out what it says now.
    RecordWritten {
        /// Whether this process claims the cluster; else it has released it.
        is_claim: bool,
    },
    /// The hand-over record was not written, because the RayCluster had changed since it was read, as it
    /// does all the time while KubeRay creates it. It was read again, and nothing is wrong.
    RecordOutdated(Failure),
    /// The hand-over record could not be written.
    RecordNotWritten(Failure),
    /// Nothing has changed since a round that found nothing to do.
    Unchanged,
    /// A round was made: of what was observed, or of a cluster that cannot be observed.
    RoundMade,
}

/// The end of a look.
#[must_use]
#[derive(Debug, PartialEq)]
pub struct Rest {
    /// The time of the next look.
    pub end: LookEnd,
    /// The reason why the look ended here.
    pub why: LookReason,
}

/// A round to be remembered.
#[must_use]
#[derive(Debug)]
pub struct Finishing {
    round: Round,
    done: Vec<Done>,
    /// The snapshot that it was made of, if it has nothing to do.
    snapshot: Option<Box<Snapshot>>,
}

/// The rest of a round that has been remembered.
#[derive(Debug)]
pub struct Finished {
    /// The announcements to make.
    pub announcements: Announcements,
    /// If it found nothing to do in the state that was observed: the round and that state, to find out
    /// whether later ones would find nothing either.
    pub idle: Option<(Round, Box<Snapshot>)>,
    /// The end of the look.
    pub rest: Rest,
}

impl Finishing {
    pub(super) fn new(round: Round, done: Vec<Done>, snapshot: Option<Box<Snapshot>>) -> Self {
        Self {
            round,
            done,
            snapshot,
        }
    }

    /// The round.
    pub fn round(&self) -> &Round {
        &self.round
    }

    /// The results of its effects.
    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// Remembers the round. `jitter` gives numbers from 0 to 1.
    pub fn finish(self, state: &mut LookState, now: f64, jitter: impl FnMut() -> f64) -> Finished {
        let (round, done) = (self.round, self.done);
        let announcements = (state.memory).fold(&round, &done, &state.settings, now, jitter);
        let busy = round.busy;
        let idle = self.snapshot.map(|snapshot| (round, snapshot));
        state.is_idle = idle.is_some();
        Finished {
            announcements,
            idle,
            rest: Rest {
                end: LookEnd::Paced { busy },
                why: LookReason::RoundMade,
            },
        }
    }
}
