//! The steps of a look until the GCS has been asked: whether this process may scale the cluster.

use json_patch::Patch;
use serde_json::Value;

use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::look::end::{Finishing, LookEnd, LookReason, Rest};
use crate::reconcile::look::round_step::RoundStep;
use crate::reconcile::look::state::{LookState, RefusedRecord};
use crate::reconcile::memory::RoundMemory;
use crate::reconcile::observed::blind::Blind;
use crate::reconcile::ownership::eligibility::Eligibility;
use crate::reconcile::ownership::handover::{Handover, HandoverStep};
use crate::reconcile::ownership::record::ScalerRole;
use crate::reconcile::settings::RoundSettings;
use crate::reconcile::unobserved_round::blind;
use crate::seconds::Retry;

/// The wait, in seconds, while the first list of pods is incomplete, since a pod that is not known
/// yet is not missing; and while policies are not known, since they may say how the cluster is scaled.
const LISTING_S: f64 = 0.1;

/// The wait after a failed write of the hand-over record, in seconds.
const RECORD_RETRY_S: f64 = 1.0;

/// The waits after the hand-over record was refused, by a webhook or for lack of a permission: that stays as it is
/// until somebody changes it.
const RECORD_REFUSED: Retry = Retry {
    first_s: RECORD_RETRY_S,
    longest_s: 60.0,
};

/// The next step of a look.
#[must_use]
#[derive(Debug)]
pub enum LookStep {
    /// Read the objects, and judge by them who may scale the cluster.
    Judge(Judging),
    /// Send a patch of the hand-over record.
    WriteRecord(WritingRecord),
    /// Ask the GCS.
    Ask(AskingGcs),
    /// Read the RayCluster again: a watch may lag, and a sidecar has none for the RayCluster.
    ReadCluster(RereadingRecord),
    /// The look is over.
    Rest(Rest),
}

/// Freshness of the watched objects of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenObjects {
    /// Not all of them, or the policies are not known.
    NotListed,
    /// There is no RayCluster.
    Gone,
    /// The same as at the last look, under the same policies.
    Same,
    /// Others.
    Changed,
}

/// The objects are to be judged.
#[must_use]
#[derive(Debug)]
pub struct Judging(());

/// The objects that were read, with the judgement on them.
#[derive(Debug, Clone, Copy)]
pub struct JudgedObjects<'a> {
    /// The RayCluster.
    pub cluster: &'a Value,
    /// Whether this process may scale it.
    pub eligibility: &'a Eligibility,
    /// The role in which this process scales.
    pub role: &'a ScalerRole,
}

/// Whether this process owns the cluster.
#[must_use]
#[derive(Debug)]
pub enum Oriented {
    /// It does.
    Owns(Owning),
    /// It does not, or not yet.
    Not(LookStep),
}

/// This process owns the cluster: its settings are to be made.
#[must_use]
#[derive(Debug)]
pub struct Owning(());

/// The hand-over record is to be written.
#[must_use]
#[derive(Debug)]
pub struct WritingRecord {
    /// The patch of the RayCluster.
    pub patch: Patch,
    is_claim: bool,
    /// The time at which it was decided on.
    at: f64,
}

/// The GCS is to be asked.
#[must_use]
#[derive(Debug)]
pub struct AskingGcs(());

/// The RayCluster is to be read again.
#[must_use]
#[derive(Debug)]
pub struct RereadingRecord(Failure);

impl LookStep {
    /// The first step of a look.
    pub fn begin(state: &mut LookState, seen: SeenObjects) -> Self {
        match seen {
            SeenObjects::NotListed => rest(LookEnd::After(LISTING_S), LookReason::NotListed),
            SeenObjects::Gone => rest(LookEnd::UntilChanged, LookReason::Gone),
            SeenObjects::Same if state.is_owned => Self::Ask(AskingGcs(())),
            SeenObjects::Same | SeenObjects::Changed => {
                state.is_owned = false;
                state.is_idle = false;
                Self::Judge(Judging(()))
            }
        }
    }
}

impl Judging {
    /// Takes in the objects as they were read. `now` is in seconds of any clock that only goes forward.
    pub fn judged(
        self,
        state: &mut LookState,
        handover: &mut Handover,
        of: JudgedObjects<'_>,
        now: f64,
    ) -> Oriented {
        Oriented::Not(
            match handover.step(of.cluster, of.eligibility, of.role, now) {
                HandoverStep::Act => return Oriented::Owns(Owning(())),
                // No effect is under way between two looks, so ownership can be released at once.
                HandoverStep::Claim(patch) | HandoverStep::Release(patch) => {
                    let is_claim = *of.eligibility == Eligibility::Ours;
                    let at = now;
                    match &state.refused {
                        Some(refused) if now < refused.until => {
                            let why = LookReason::RecordNotWritten(refused.failure.clone());
                            rest(LookEnd::After(refused.until - now), why)
                        }
                        _ => LookStep::WriteRecord(WritingRecord {
                            patch,
                            is_claim,
                            at,
                        }),
                    }
                }
                HandoverStep::Wait { until, why } => {
                    rest(LookEnd::After(until - now), LookReason::Waits(why))
                }
                HandoverStep::Rest => {
                    // The memory of a cluster is wrong once another process may have scaled it.
                    state.memory = RoundMemory::default();
                    let why = match of.eligibility {
                        Eligibility::Leave(reason) => LookReason::NotOurs(reason.clone()),
                        Eligibility::Ours => LookReason::NoRecord,
                    };
                    rest(LookEnd::UntilChanged, why)
                }
            },
        )
    }
}

impl Owning {
    /// Takes in the settings by which the cluster is scaled.
    pub fn owns(self, state: &mut LookState, settings: RoundSettings) -> LookStep {
        state.settings = settings;
        state.is_owned = true;
        LookStep::Ask(AskingGcs(()))
    }
}

impl WritingRecord {
    /// Whether this process claims the cluster; else it releases it.
    pub fn is_claim(&self) -> bool {
        self.is_claim
    }

    /// Takes in how the write ended.
    pub fn wrote(self, state: &mut LookState, result: Result<(), Failure>) -> LookStep {
        let before = state.refused.take();
        match result {
            Ok(()) => {
                let is_claim = self.is_claim;
                rest(LookEnd::After(0.0), LookReason::RecordWritten { is_claim })
            }
            Err(failure) if failure.meaning() == Meaning::Stale => {
                LookStep::ReadCluster(RereadingRecord(failure))
            }
            Err(failure) if matches!(failure.meaning(), Meaning::Refused | Meaning::Forbidden) => {
                let times = before.map_or(0, |before| before.times).saturating_add(1);
                let wait_s = RECORD_REFUSED.wait_s(times);
                state.refused = Some(RefusedRecord {
                    failure: failure.clone(),
                    times,
                    until: self.at + wait_s,
                });
                let why = LookReason::RecordNotWritten(failure);
                rest(LookEnd::After(wait_s), why)
            }
            Err(failure) => not_written(failure),
        }
    }
}

impl RereadingRecord {
    /// Goes on, whether or not it could be read.
    pub fn read(self) -> LookStep {
        match self.0 {
            answered @ Failure::Api(_) => {
                let why = LookReason::RecordOutdated(answered);
                rest(LookEnd::After(RECORD_RETRY_S), why)
            }
            // It was not even sent, because the Lease is lost.
            not_sent => not_written(not_sent),
        }
    }
}

impl AskingGcs {
    /// Takes in that the GCS has answered, with what it said.
    pub fn answered<A>(self, state: &mut LookState, answer: A, now: f64) -> RoundStep<A> {
        if state.memory.changed_at == 0.0 {
            // The quiet time of the cluster is not known after a start.
            state.memory.changed_at = now;
        }
        RoundStep::begin(state, answer)
    }

    /// Takes in that the cluster cannot be observed: nothing is done on missing data.
    pub fn blind(self, state: &LookState, why: &Blind, now: f64) -> Finishing {
        Finishing::new(blind(&state.memory, why, now), Vec::new(), None)
    }
}

fn not_written(failure: Failure) -> LookStep {
    let why = LookReason::RecordNotWritten(failure);
    rest(LookEnd::After(RECORD_RETRY_S), why)
}

fn rest(end: LookEnd, why: LookReason) -> LookStep {
    LookStep::Rest(Rest { end, why })
}
