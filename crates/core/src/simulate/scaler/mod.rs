//! The reconciler in a simulated world: the same looks, hand-over, memory and intervals as in the
//! controller, with calls that the world answers.
//!
//! It takes a look that is due and answers to calls; it sends calls to the world, and sets its next look.
//!
//! - `process`: the scaler between looks, and when it looks next
//! - `looks`: a [`look`](crate::reconcile::look) at the world, and the calls that follow
//! - `idle`: rounds that need not be made
//!
//! Invariant: nothing is decided here. What follows on what is the core's, and rounds that are spared would
//! have changed nothing.

mod idle;
mod looks;
mod process;

pub use process::{Scaler, SparedSteps};
