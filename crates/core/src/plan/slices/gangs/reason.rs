//! The next try of a placement group that was given up, in words.

use crate::snapshot::moment;

/// The next try of a placement group that was given up.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum NextTry {
    /// At that time, in seconds since 1970.
    #[error("at {}", moment(*.0))]
    At(f64),
    /// It is time, but another placement group is tried first. Nobody knows when that is done.
    #[error("after another placement group, which is tried now")]
    InTurn,
}
