//! How long a cluster is left alone between two looks.

use std::time::Duration;

/// After a change of the objects was seen, the next look is not sooner than this after the last
/// one began: a thousand pods that start are not a thousand looks.
const TOGETHER: Duration = Duration::from_millis(50);

/// For how long where no time can be told: one that is over, or none at all.
const OTHERWISE: Duration = Duration::from_secs(1);

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// After so long, or when something changes.
    For(Duration),
    /// When something changes.
    UntilChanged,
}

impl Requeue {
    /// For so many seconds.
    pub fn seconds(seconds: f64) -> Self {
        Self::For(Duration::try_from_secs_f64(seconds).unwrap_or(OTHERWISE))
    }
}

/// How long after the beginning of a look that took so long the next one begins at the earliest,
/// when something changed meanwhile: half of the time is left to others.
pub fn together(took: Duration) -> Duration {
    TOGETHER.max(took * 2)
}
