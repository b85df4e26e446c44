//! Removal of nodes.
//!
//! - [`enforce`]: nodes above a maximum go before packing, and idle ones after it; beside that,
//!   what Ray enforces with it: nodes up to a minimum are launched
//! - [`idle_end`]: the whole cluster ends, because nobody uses it
//!
//! Other nodes go by `slices`; pods whose Ray node has stopped are deleted in `conclude`.
//!
//! In: nodes with the demand that was placed on them, and what is remembered of them. Out: the fate
//! of each node. Invariant: a node goes at once or
//! not at all, and has one cause.

pub(crate) mod enforce;
pub(crate) mod idle_end;
