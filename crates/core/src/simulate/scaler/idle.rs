//! Rounds that need not be made: for how long a state in which nothing was to be done stays so, if only
//! time passes.

use crate::plan::Strategy;
use crate::reconcile::Round;
use crate::reconcile::look::LookState;
use crate::reconcile::unchanged::{self, REST_S, UnchangedCheck};
use crate::simulate::world::World;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::ClusterResourceState;

/// The longest time for which rounds of the same state are spared, in seconds. The controller trusts no
/// proof for longer than [`REST_S`], and makes a round then, which finds nothing to do. Here that round
/// is left out, too.
const LONGEST_REST_S: f64 = 640.0;

/// The longest such time once nothing has happened for a day: a hundred days, so that traces of years end.
const LONGEST_REST_OF_YEARS_S: f64 = 8_640_000.0;

const DAY_S: f64 = 86_400.0;

/// Seconds from the end of one round of Ray's autoscaler to the beginning of the next.
/// (`AUTOSCALER_UPDATE_INTERVAL_S`)
const RAY_INTERVAL_S: f64 = 5.0;

/// A round that found nothing to do.
#[derive(Debug, Clone)]
pub(super) struct IdleRound {
    /// The versions that it was made of.
    pub(super) of: ObservedVersions,
    /// The time since which nothing has been found to do in this state, in seconds since 1970.
    pub(super) since: f64,
    pub(super) proof: Proof,
}

/// Versions of everything that a scaler observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObservedVersions {
    /// The number of the view of objects.
    pub(super) view: u64,
    /// The version of the GCS's answer; `None` if it does not answer.
    pub(super) gcs: Option<u64>,
}

impl ObservedVersions {
    /// The present versions.
    pub(super) fn of(world: &World) -> Self {
        Self {
            view: world.view.version,
            // A GCS that does not answer says nothing, whatever is so in it.
            gcs: (!world.disturbance.is_gcs_away()).then_some(world.ray.version),
        }
    }
}

/// Proof that rounds of the same state can be spared.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// Nobody has asked.
    Unknown(Box<(Round, Snapshot)>),
    /// They can be spared as long as the check holds.
    Known(UnchangedCheck, Box<(Round, Snapshot)>),
    /// They cannot.
    Refuted,
}

impl IdleRound {
    /// If a round of now would find nothing to do, as far as can be told without or with what the GCS says: whether
    /// something is pending or on its way all the same. So many clusters are busy, if this one is.
    pub(super) fn holds(
        &mut self,
        versions: ObservedVersions,
        gcs: Option<&ClusterResourceState>,
        now: f64,
        state: &LookState,
        busy_clusters: usize,
    ) -> Option<bool> {
        if self.of.view != versions.view {
            return None;
        }
        let is_same = self.of == versions;
        if let Proof::Unknown(made) = &self.proof {
            // Most states change before anybody asks whether rounds of them can be spared.
            if !is_same && !gcs.is_some_and(|gcs| unchanged::is_same(gcs, &made.1.gcs)) {
                return None;
            }
            let busy = made.0.busy.then_some(busy_clusters);
            self.prove(state, interval_s(state, busy, now));
        }
        let Proof::Known(check, _) = &self.proof else {
            return None;
        };
        let holds = if is_same {
            check.is_fresh(now)
        } else {
            gcs.is_some_and(|gcs| check.holds(gcs, now))
        };
        if holds {
            self.of = versions;
        }
        holds.then_some(check.is_busy)
    }

    /// The time until which rounds of the same state are spared, in seconds since 1970, if that is
    /// known and nothing has happened for a day.
    pub(super) fn spared_until(&self, versions: ObservedVersions, now: f64) -> Option<f64> {
        match &self.proof {
            Proof::Known(check, _) if self.of == versions && now - self.since > DAY_S => {
                Some(check.until)
            }
            _ => None,
        }
    }

    /// The round of that time, if it was made by looking ahead, and since when there has been nothing to do.
    pub(super) fn foreseen(
        self,
        versions: ObservedVersions,
        time: &str,
    ) -> Option<((Round, Snapshot), f64)> {
        match self.proof {
            Proof::Known(_, then) if self.of == versions && then.1.time == time => {
                Some((*then, self.since))
            }
            _ => None,
        }
    }

    /// Finds out for how long rounds of this state can be spared: each time for longer. If nothing happens, looks
    /// come every `interval_s`.
    fn prove(&mut self, state: &LookState, interval_s: f64) {
        let Proof::Unknown(made) = std::mem::replace(&mut self.proof, Proof::Refuted) else {
            return;
        };
        let (round, snapshot) = *made;
        // Waits end at some time, and schedules begin and end.
        let is_bounded = round.busy || !state.settings.plan.schedules.is_empty();
        let quiet_s = round.at - self.since;
        let longest = match is_bounded {
            true => REST_S,
            false if quiet_s > DAY_S => LONGEST_REST_OF_YEARS_S,
            false => LONGEST_REST_S,
        };
        let mut rest_s = quiet_s.clamp(REST_S, longest);
        let mut snapshot = Box::new(snapshot);
        while rest_s >= interval_s.min(REST_S) {
            // The look at the end finds its round made.
            let whole_s = (rest_s / interval_s).ceil() * interval_s;
            let (memory, settings) = (&state.memory, &state.settings);
            match UnchangedCheck::lasting(whole_s, &round, *snapshot, memory, settings) {
                Ok((check, then)) => {
                    self.proof = Proof::Known(check, Box::new(then));
                    return;
                }
                Err(again) => snapshot = again,
            }
            rest_s /= 4.0;
        }
    }
}

/// The seconds until the next look, if nothing happens before; `busy` is how many clusters are, if this
/// one is. Ray's autoscaler has an interval of its own.
pub(super) fn interval_s(state: &LookState, busy: Option<usize>, now: f64) -> f64 {
    match state.settings.plan.strategy {
        Strategy::Ray => RAY_INTERVAL_S,
        Strategy::Rayfit => state.interval_s(busy, now),
    }
}
