//! Effects on one subject that have an order.
//!
//! The chains of a round are independent: they may be performed at the same time and in any
//! order, and one that fails stops at the failed step. Within a chain the next step is only known
//! once the one before was answered:
//!
//! ```text
//! grow    note the resize on the pod -> resize the pod        (the raylet: a later round)
//! shrink  resize the raylet -> note -> resize the pod to what the raylet kept
//! mixed   resize the raylet in what shrinks -> note -> resize the pod
//! done    resize the raylet to the pod's size -> note that it is done
//! ```
//!
//! The note comes before the resize so that a resize that was asked for is always known to have
//! been: a note without a resize is only a raylet that is told its size once more.

use super::effect::{Effect, Reply, Subject};
use super::outcome::Failure;
use super::resize::PodStep;

/// Effects on one subject, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// What they are about.
    pub about: Subject,
    /// Why, in one line for people; sizes and counts included.
    pub why: String,
    pub(super) steps: Steps,
}

/// What is left to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Steps {
    /// One call.
    One(Effect),
    /// The resize of a pod.
    Pod(Box<PodStep>),
}

impl Chain {
    /// The first effect. The shell performs it, hands its answer to [`Chain::next`], performs what
    /// that gives, and so on.
    pub fn first(&self) -> Effect {
        match &self.steps {
            Steps::One(effect) => effect.clone(),
            Steps::Pod(step) => step.effect(),
        }
    }

    /// The next effect after the last one was answered so; `None` when the chain is done. A
    /// failed step may have an effect of its own: a refused resize is noted on the pod.
    pub fn next(&mut self, answer: Result<&Reply, &Failure>, now: f64) -> Option<Effect> {
        match &mut self.steps {
            Steps::One(_) => None,
            Steps::Pod(step) => {
                let next = step.next(answer, now)?;
                **step = next;
                Some(step.effect())
            }
        }
    }
}
