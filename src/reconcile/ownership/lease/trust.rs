//! Whether a write may begin: only if it will end while the Lease is trusted.

use std::time::Duration;

/// The longest time that a write may take; less than the time for which a renewed Lease is trusted.
pub const LONGEST_WRITE: Duration = Duration::from_secs(4);

/// The reason why a write is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// Another replica leads, or none.
    #[error("another replica holds the Lease, and scales the clusters")]
    NotHeld,
    /// The Lease may end before the request does.
    #[error(
        "the Lease ends in {left:?}, before the request could be done: is the API server slow?"
    )]
    TooLate {
        /// The time for which the Lease is still trusted.
        left: Duration,
    },
}

/// Whether a write that takes at most `longest` may begin. `left` is for how long the Lease is still trusted, if it
/// is held at all.
///
/// # Errors
///
/// The write may not begin.
pub fn may_begin(left: Option<Duration>, longest: Duration) -> Result<(), Fenced> {
    match left {
        None => Err(Fenced::NotHeld),
        Some(left) if left < longest => Err(Fenced::TooLate { left }),
        Some(_) => Ok(()),
    }
}
