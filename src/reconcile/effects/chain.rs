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

use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
use crate::reconcile::effects::failure::Failure;
use crate::reconcile::effects::resize::PodSteps;

/// Effects on one subject, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// What they are about.
    pub about: EffectTarget,
    /// Why, in one line for people; sizes and counts included.
    pub why: String,
    steps: Steps,
}

/// What is left to do.
#[derive(Debug, Clone, PartialEq)]
enum Steps {
    /// One call, until it was answered.
    One(Option<Box<Effect>>),
    /// The resize of a pod.
    Pod(Box<PodSteps>),
}

impl Chain {
    /// A chain of one effect.
    pub(crate) fn one(about: EffectTarget, why: String, effect: Effect) -> Self {
        let steps = Steps::One(Some(Box::new(effect)));
        Self { about, why, steps }
    }

    /// The resize of a pod.
    pub(crate) fn pod(about: EffectTarget, why: String, steps: PodSteps) -> Self {
        let steps = Steps::Pod(Box::new(steps));
        Self { about, why, steps }
    }

    /// The next effect to perform; `None` when the chain is done.
    pub fn next(&self) -> Option<Effect> {
        match &self.steps {
            Steps::One(effect) => effect.as_deref().cloned(),
            Steps::Pod(steps) => steps.effect(),
        }
    }

    /// Takes in what came of the effect that [`Chain::next`] gave. A failed step may have an
    /// effect of its own: a refused resize is noted on the pod.
    pub fn answered(&mut self, answer: Result<&Reply, &Failure>, now: f64) {
        match &mut self.steps {
            Steps::One(effect) => *effect = None,
            Steps::Pod(steps) => steps.answered(answer, now),
        }
    }
}
