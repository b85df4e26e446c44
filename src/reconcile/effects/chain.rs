//! Chains: effects on one target that have to be performed in order.
//!
//! The chains of a round are independent: they may be performed at the same time and in any
//! order. A chain stops at the first step that fails. Within a chain the next step is known only
//! when the step before it has been answered:
//!
//! ```text
//! grow    note the resize on the pod -> resize the pod        (the raylet: a later round)
//! shrink  resize the raylet -> note -> resize the pod to what the raylet kept
//! mixed   resize the raylet in what shrinks -> note -> resize the pod
//! done    resize the raylet to the pod's size -> note that it is done
//! ```
//!
//! The note is written before the resize, so that no resize request is ever unknown after a
//! restart: a note that is followed by no resize only causes the raylet to be told its size once
//! more.

use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::effects::resize::PodSteps;

/// Effects on one target, performed one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The target of the effects.
    pub about: EffectTarget,
    /// The reason for them, in one line for people, with sizes and counts.
    pub why: String,
    steps: Steps,
}

/// The steps of a chain that are left to perform.
#[derive(Debug, Clone, PartialEq)]
enum Steps {
    /// A single call; `None` once it has been answered.
    One(Option<Box<Effect>>),
    /// The steps that resize a pod.
    Pod(Box<PodSteps>),
}

impl Chain {
    /// A chain of a single effect.
    pub(crate) fn one(about: EffectTarget, why: String, effect: Effect) -> Self {
        let steps = Steps::One(Some(Box::new(effect)));
        Self { about, why, steps }
    }

    /// A chain that resizes a pod.
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

    /// Takes in the answer to the effect that [`Chain::next`] gave. A failed step may lead to a
    /// further effect: a resize that was refused is noted on the pod.
    pub fn answered(&mut self, answer: Result<&Reply, &Failure>, now: f64) {
        match &mut self.steps {
            Steps::One(effect) => *effect = None,
            Steps::Pod(steps) => steps.answered(answer, now),
        }
    }
}

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
