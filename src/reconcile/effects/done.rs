//! The results of effects.

use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};

/// One effect that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The target of the effect, which is the chain's target.
    pub about: EffectTarget,
    /// The effect.
    pub effect: Effect,
    /// The answer, or the failure.
    pub result: Result<Reply, Failure>,
}

impl Done {
    /// Whether another write came first, or the observed objects were stale.
    pub fn is_stale(&self) -> bool {
        matches!(&self.result, Err(failure) if failure.meaning() == Meaning::Stale)
    }
}
