//! Shrinking of pods that stay.
//!
//! - [`spare`]: CPU that a pod has not needed for a while
//! - [`holders`]: pods that keep their size, because a task waits for it
//!
//! (Memory that a pod was given because its own was nearly full comes down in `pressure`.)
//!
//! In: nodes with the demand that was placed on them, and what is remembered of what they had to spare. Out: the
//! resizes of those that give up something.

pub(crate) mod holders;
pub(crate) mod spare;
