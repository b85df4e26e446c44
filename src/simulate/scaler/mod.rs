//! The reconciler in a simulated world: the same looks, hand-over, memory and intervals as in the
//! controller, with calls that the world answers.
//!
//! It takes a look that is due, answers to calls, and what becomes of its process; it sends calls to the
//! world, and sets its next look.
//!
//! - `process`: the scaler, and what becomes of its process
//! - `looks`: a [`look`](crate::reconcile::look) at the world, and the calls that follow
//! - `idle`: rounds that need not be made
//!
//! Invariant: nothing is decided here. What follows on what is the core's, and rounds that are spared would
//! have changed nothing.

mod idle;
mod looks;
mod process;

pub use process::{Scaler, Spared};
