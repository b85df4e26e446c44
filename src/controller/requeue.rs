//! The requeue: how long a cluster is left alone between two looks.

use std::time::Duration;

use crate::reconcile::observed::cadence::TOGETHER_MS;

/// The wait where a time cannot be expressed: a negative one, or one that is not a number.
const OTHERWISE: Duration = Duration::from_secs(1);

/// The time of the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// After this time, or when something changes.
    For(Duration),
    /// At the next change.
    UntilChanged,
}

impl Requeue {
    /// A requeue after this many seconds.
    pub fn seconds(seconds: f64) -> Self {
        Self::For(Duration::try_from_secs_f64(seconds).unwrap_or(OTHERWISE))
    }
}

/// The earliest beginning of the next look after a change, counted from the beginning of a look that computed
/// for `worked`: at least half of the time is left to other clusters. Time in which a look waited for others,
/// such as at the gate, was theirs already.
pub fn together(worked: Duration) -> Duration {
    Duration::from_millis(TOGETHER_MS).max(worked * 2)
}
