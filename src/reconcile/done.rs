//! What came of effects.

use super::effect::{Effect, Reply, Subject};
use super::outcome::Failure;

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
