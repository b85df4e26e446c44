//! Permission to write: a write may begin only if it will end while the Lease is trusted.

use std::time::Duration;

use crate::reconcile::effects::failure::Failure;

/// The longest time that a write may take; less than the time for which a renewed Lease is trusted.
pub const LONGEST_WRITE: Duration = Duration::from_secs(4);

/// Permits a write that takes at most `longest`. `remaining` is the time for which the Lease is still trusted, if it
/// is held at all.
///
/// # Errors
///
/// The write may not begin, so that it is [not sent](Failure::NotSent).
pub fn may_begin(remaining: Option<Duration>, longest: Duration) -> Result<(), Failure> {
    let why = match remaining {
        // Another replica leads, or none.
        None => "another replica holds the Lease, and scales the clusters".to_owned(),
        Some(remaining) if remaining < longest => format!(
            "the Lease ends in {remaining:?}, before the request could be done: is the API server slow?"
        ),
        Some(_) => return Ok(()),
    };
    Err(Failure::NotSent(why))
}
