//! What came of effects.

use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
use crate::reconcile::effects::failure::Failure;

/// One effect that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// What it was about: the chain's subject.
    pub about: EffectTarget,
    /// The effect.
    pub effect: Effect,
    /// What came of it.
    pub result: Result<Reply, Failure>,
}
