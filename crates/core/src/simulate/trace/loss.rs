//! Facts that a recording does not have, or that a trace cannot hold.

use std::fmt;

/// A kind of fact that was left out or assumed when a recording became a trace, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Tasks and actors that had not ended when they were recorded.
    Unfinished(usize),
    /// Calls of actors whose creation is not recorded.
    CallsOnly(usize),
    /// Placement groups in which nothing ran, so that nothing says when they were there.
    UnusedGroups(usize),
    /// Placement groups whose strategy is not recorded.
    Strategy(usize),
    /// The number of recorded tasks is the most that Ray lists, so that there may be more.
    Limit(usize),
    /// Attempts of tasks that the GCS forgot while it was recorded, or that had no room; some of them
    /// may be known from before.
    Forgotten(usize),
}

impl Loss {
    /// The number of cases.
    pub fn count(&self) -> usize {
        match self {
            Self::Unfinished(count)
            | Self::CallsOnly(count)
            | Self::UnusedGroups(count)
            | Self::Strategy(count)
            | Self::Limit(count)
            | Self::Forgotten(count) => *count,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished(count) => write!(
                f,
                "left out, as they had not ended: {count}; record after the workload has ended"
            ),
            Self::CallsOnly(count) => write!(
                f,
                "left out, as the creation of their actors is not recorded: {count} (calls)"
            ),
            Self::UnusedGroups(count) => write!(
                f,
                "left out, as nothing ran in them: {count} (placement groups)"
            ),
            Self::Strategy(count) => write!(
                f,
                "taken as PACK, as Ray does not list their strategy: {count} (placement groups)"
            ),
            Self::Forgotten(count) => write!(
                f,
                "the GCS forgot {count} attempts of tasks while it was recorded: those of them that it was \
                 not asked for before are missing (record with a shorter --interval, or set \
                 RAY_task_events_max_num_task_in_gcs on the head)"
            ),
            Self::Limit(count) => write!(
                f,
                "there may be more: Ray stops at {count} tasks, as many as are in a list \
                 (ray list tasks --limit 10000, job by job with --filter job_id=...)"
            ),
        }
    }
}
