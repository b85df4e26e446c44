//! The results of effects.

use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
use crate::reconcile::effects::failure::Failure;

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
