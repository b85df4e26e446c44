//! What a process remembers of a cluster from round to round. All of it may be lost at any time.

use super::backoff::Waits;
use super::effect::{Effect, Reply, Subject};
use super::outcome::Failure;
use super::round::Round;
use super::settings::Settings;
use crate::snapshot::History;

/// What is remembered of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// For the planner; the shell puts it into the next snapshot.
    pub history: History,
    /// Whom to leave alone.
    pub waits: Waits,
    /// When anything of the cluster last changed, in seconds since 1970.
    pub changed_at: f64,
}

/// One effect that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// What it was about: the chain's subject.
    pub about: Subject,
    /// The effect.
    pub effect: Effect,
    /// What came of it.
    pub result: Result<Reply, Failure>,
}

impl Memory {
    /// Takes in a round and what came of its effects, whether all were tried or not. `jitter`
    /// gives numbers from 0 to 1.
    pub fn fold(
        &mut self,
        round: &Round,
        done: &[Done],
        settings: &Settings,
        now: f64,
        jitter: impl FnMut() -> f64,
    ) {
        let _ = (done, settings, now, jitter);
        self.history = round.plan.remember.clone();
    }
}
