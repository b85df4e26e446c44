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

use std::collections::VecDeque;

use crate::plan::ResizeNote;
use crate::ray::resource::CpuAndMemory;
use crate::reconcile::effects::effect::{Effect, EffectTarget, PodPatch, RayletResize, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::effects::size::PodSize;
use crate::seconds::second_of;

/// Effects on one target, performed one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The target of the effects.
    pub about: EffectTarget,
    /// The reason for them, in one line for people, with sizes and counts.
    pub why: String,
    /// The steps that are left to perform.
    pub(crate) steps: VecDeque<ChainStep>,
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChainStep {
    /// A call that depends on no answer.
    Call(Box<Effect>),
    /// A request to the raylet to give up what the pod is to lose. What the raylet keeps, the pod keeps
    /// too.
    Shrink(RayletResize),
    /// The resize of a pod.
    Resize {
        /// The pod.
        pod: Box<PodSize>,
        /// The new size of its ray container.
        target: CpuAndMemory,
        /// The note about its resizes.
        note: ResizeNote,
        /// The plan only gives something up.
        only_shrinks: bool,
    },
}

impl Chain {
    /// A chain of a single effect.
    pub(crate) fn one(about: EffectTarget, why: String, effect: Effect) -> Self {
        let steps = [ChainStep::Call(Box::new(effect))].into();
        Self { about, why, steps }
    }

    /// The next effect to perform; `None` when the chain is done.
    pub fn next(&self) -> Option<Effect> {
        Some(match self.steps.front()? {
            ChainStep::Call(effect) => Effect::clone(effect),
            ChainStep::Shrink(raylet) => Effect::ResizeRaylet(raylet.clone()),
            ChainStep::Resize { pod, target, .. } => Effect::ResizePod(PodPatch {
                pod: pod.name.clone(),
                body: pod.patch(*target),
            }),
        })
    }

    /// Takes in the answer to the effect that [`Chain::next`] gave. A failed step may lead to a
    /// further effect: a resize that was refused is noted on the pod.
    pub fn answered(&mut self, answer: Result<&Reply, &Failure>, now: f64) {
        let Some(step) = self.steps.pop_front() else {
            return;
        };
        let failure = match (&step, answer) {
            // The pod must not shrink below what the raylet kept, and need not be resized if no change is left.
            (ChainStep::Shrink(_), Ok(Reply::RayletTotals { cpu, memory })) => {
                let mut is_idle = false;
                for step in &mut self.steps {
                    if let ChainStep::Resize { pod, target, .. } = step {
                        *target = pod.at_least(*target, *cpu, *memory);
                        is_idle = !pod.differs(*target);
                    }
                }
                if is_idle {
                    self.steps.clear();
                }
                return;
            }
            (_, Ok(_)) => return,
            (_, Err(failure)) => failure,
        };
        self.steps.clear();
        let ChainStep::Resize {
            pod,
            mut note,
            only_shrinks,
            ..
        } = step
        else {
            return;
        };
        // The note says why the pod was not resized.
        let is_limit_known = match failure.meaning() {
            Meaning::TooLarge(allocatable) => pod.learn(&mut note, allocatable),
            Meaning::Refused | Meaning::Forbidden => false,
            // This failure may not happen again. The entry that a resize was requested ends by
            // itself, when the raylet is told the size that the pod has.
            _ => return,
        };
        note.resizing_at = None;
        // A pod that could not be made smaller has its size, and may still grow.
        if !is_limit_known && !only_shrinks {
            note.last_failed_at = Some(second_of(now));
            note.last_failed_reason = Some(failure.to_string());
        }
        let noted = ChainStep::Call(Box::new(pod.noted(&note)));
        self.steps.push_back(noted);
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
