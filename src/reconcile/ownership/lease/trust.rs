//! Whether a write may begin: only if it will end while the Lease of its cluster's shard is trusted.

use std::time::Duration;

/// The longest time that a write may take; less than the time for which a renewed Lease is trusted.
pub const LONGEST_WRITE: Duration = Duration::from_secs(4);

/// The reason why a write is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// Another replica holds the shard.
    #[error("shard {0} is scaled by another replica")]
    NotHeld(u32),
    /// The Lease may end before the request does.
    #[error(
        "the Lease of shard {shard} ends in {left:?}, before the request could be done: is the API server slow?"
    )]
    TooLate {
        /// The shard.
        shard: u32,
        /// The time for which the Lease is still trusted.
        left: Duration,
    },
}

/// Whether a write for a shard that takes at most `longest` may begin. `left` is for how long the Lease is
/// still trusted, if it is held at all.
///
/// # Errors
///
/// The write may not begin.
pub fn may_begin(shard: u32, left: Option<Duration>, longest: Duration) -> Result<(), Fenced> {
    let left = left.ok_or(Fenced::NotHeld(shard))?;
    if left < longest {
        return Err(Fenced::TooLate { shard, left });
    }
    Ok(())
}
