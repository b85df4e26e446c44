//! One look at a cluster, as steps: which of them follows which, without what performs them.
//!
//! [`LookStep::begin`] takes the [`LookState`] of earlier looks and whether the cluster's objects have changed.
//! Each step says what is to be done (judge the objects, ask the GCS, compare, observe,
//! decide, perform), and its answer gives the next one, down to a [`LookEnd`]: when to look again, and why
//! the look ended there. The controller performs the steps on a live cluster, and the simulator on its
//! world, so what is simulated is the order that ships.
//!
//! - [`step`]: until the GCS is asked: ownership and the hand-over record
//! - [`round_step`]: from the answer of the GCS to effects and their results
//! - [`end`]: how a look ends
//! - [`state`]: what is remembered from look to look
//!
//! Invariants:
//!
//! - A step can only be answered once, and only with its own answer: it is a value that the answer
//!   consumes.
//! - Nothing is decided unless the objects that were seen last show that this process owns the
//!   cluster, and the GCS has answered in this very look.
//! - A round is only spared if the round before it found nothing to do, and no object has
//!   changed since.

pub mod end;
pub mod round_step;
pub mod state;
pub mod step;
#[cfg(test)]
mod tests;

pub use end::{Finishing, LookEnd, LookReason, Rest};
pub use round_step::RoundStep;
pub use state::LookState;
pub use step::{JudgedObjects, LookStep, Oriented, SeenObjects};
