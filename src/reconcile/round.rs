//! One round: from a snapshot to what is to be done.

use super::chain::Chain;
use super::driver_log::Message;
use super::effect::Subject;
use super::memory::Memory;
use super::news::News;
use super::settings::Settings;
use crate::plan::{self, Plan, Report};
use crate::snapshot::Snapshot;

/// What is to be done in one round, and what is to be said.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// What is to be done: independent of each other, most urgent first.
    pub chains: Vec<Chain>,
    /// What the plan wants and is not done now, with the reason.
    pub skipped: Vec<Skipped>,
    /// Kubernetes Events on the RayCluster: what is new since the last round.
    pub news: Vec<News>,
    /// Lines for `event_AUTOSCALER.log` of the head; only a sidecar can write them.
    pub messages: Vec<Message>,
    /// Something is pending or on its way: look again soon.
    pub busy: bool,
    /// The plan behind it.
    pub plan: Plan,
    /// Why the plan is as it is.
    pub report: Report,
}

/// Something that is not done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// What it is about.
    pub about: Subject,
    /// Why.
    pub why: String,
}

/// Plans and turns the plan into effects. The snapshot has the memory's history and the time.
pub fn round(snapshot: &Snapshot, memory: &Memory, settings: &Settings) -> Round {
    let _ = memory;
    let (plan, report) = plan::decide(snapshot, &settings.plan);
    Round {
        plan,
        report,
        ..Round::default()
    }
}

/// The round of a cluster that cannot be seen: nothing is done on missing data, and it is said
/// why. `why` names what is missing, such as "its GCS at 10.0.0.7:6379 does not answer".
pub fn blind(memory: &Memory, why: &str, now: f64) -> Round {
    let _ = (memory, now);
    Round {
        skipped: vec![Skipped {
            about: Subject::Cluster,
            why: why.to_owned(),
        }],
        ..Round::default()
    }
}
