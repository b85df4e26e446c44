//! What one round is to do and to say: data.

use std::collections::BTreeSet;

use crate::plan::{Plan, PlanReport};
use crate::reconcile::effects::chain::Chain;
use crate::reconcile::effects::effect::EffectTarget;
use crate::reconcile::events::event::TrackedCondition;
use crate::reconcile::observed::outage::Outage;
use crate::reconcile::observed::stabilisation::Stabilisation;

/// What is to be done in one round, and what is to be said.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// What is to be done: independent of each other, most urgent first.
    pub chains: Vec<Chain>,
    /// What the plan wants and is not done now, with the reason.
    pub skipped: Vec<Skipped>,
    /// Something is pending or on its way: look again soon.
    pub busy: bool,
    /// The time of the snapshot, in seconds since 1970.
    pub at: f64,
    /// The plan behind it.
    pub plan: Plan,
    /// Why the plan is as it is.
    pub report: PlanReport,
    /// What is to be said of the state that was seen.
    pub(super) states: Vec<TrackedCondition>,
    /// The pods that are there.
    pub(super) pods: BTreeSet<String>,
    pub(super) settling: Option<Stabilisation>,
    /// That the cluster cannot be seen, or could not be until a moment ago.
    pub(super) outage: Option<Outage>,
    /// CPUs and GPUs of all Ray nodes that run.
    pub(super) totals: Option<(f64, f64)>,
}

/// Something that is not done now.
#[derive(Debug, Clone, PartialEq)]
pub struct Skipped {
    /// What it is about.
    pub about: EffectTarget,
    /// Why.
    pub why: String,
    /// When it will be tried again, in seconds since 1970, if it waits for that only.
    pub until: Option<f64>,
    /// Somebody should know: it is more than a race or a first hiccup.
    pub lasting: bool,
}
