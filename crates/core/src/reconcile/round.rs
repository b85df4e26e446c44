//! A round: what is to be done and announced after one look at a cluster, as data.

use std::collections::BTreeSet;

use crate::plan::{Plan, PlanReport};
use crate::reconcile::effects::chain::Chain;
use crate::reconcile::effects::effect::EffectTarget;
use crate::reconcile::events::event::TrackedCondition;
use crate::reconcile::observed::outage::Outage;
use crate::reconcile::observed::stabilisation::Stabilisation;

/// The effects and the announcements of one round.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// The effects to perform. The chains are independent of each other; the most urgent come
    /// first.
    pub chains: Vec<Chain>,
    /// Actions that the plan wants but this round does not take, with the reasons.
    pub skipped: Vec<Skipped>,
    /// Something is pending or on its way, so that the cluster is looked at again soon.
    pub busy: bool,
    /// The time of the snapshot, in seconds since 1970.
    pub at: f64,
    /// The plan that this round carries out.
    pub plan: Plan,
    /// The reasons for the plan.
    pub report: PlanReport,
    /// The conditions that were found in the snapshot and are worth an Event.
    pub(super) conditions: Vec<TrackedCondition>,
    /// The names of the cluster's pods.
    pub(super) pods: BTreeSet<String>,
    pub(super) stabilisation: Option<Stabilisation>,
    /// The outage, if the cluster cannot be observed, or could not be until a moment ago.
    pub(super) outage: Option<Outage>,
    /// The total CPUs and GPUs of all running Ray nodes.
    pub(super) totals: Option<(f64, f64)>,
}

/// An action that the plan wants but this round does not take.
#[derive(Debug, Clone, PartialEq)]
pub struct Skipped {
    /// The target of the action.
    pub about: EffectTarget,
    /// The reason why it is not taken.
    pub why: String,
    /// The time at which it is tried again, in seconds since 1970, if time is all that it waits for.
    pub until: Option<f64>,
    /// Reports it to users, because it is more than a race or a first failure.
    pub lasting: bool,
}
