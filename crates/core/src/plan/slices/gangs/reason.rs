//! The next try of a placement group that was given up, in words.

use crate::snapshot::moment;

/// The next try of a placement group that was given up.
#[derive(Debug, Clone, Copy, PartialEq, derive_more::Display)]
pub enum NextTry {
    /// At that time, in seconds since 1970.
    #[display("at {}", moment(*_0))]
    At(f64),
    /// It is time, but another placement group is tried first. Nobody knows when that is done.
    #[display("after another placement group, which is tried now")]
    InTurn,
}
