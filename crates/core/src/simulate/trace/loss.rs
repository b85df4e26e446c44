//! Facts that a recording does not have, or that a trace cannot hold.

/// A kind of fact that was left out or assumed when a recording became a trace, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum Loss {
    /// Tasks and actors that had not ended when they were recorded.
    #[display("left out, as they had not ended: {_0}; record after the workload has ended")]
    Unfinished(usize),
    /// Calls of actors whose creation is not recorded.
    #[display("left out, as the creation of their actors is not recorded: {_0} (calls)")]
    CallsOnly(usize),
    /// Placement groups in which nothing ran, so that nothing says when they were there.
    #[display("left out, as nothing ran in them: {_0} (placement groups)")]
    UnusedGroups(usize),
    /// Placement groups whose strategy is not recorded.
    #[display("taken as PACK, as Ray does not list their strategy: {_0} (placement groups)")]
    Strategy(usize),
    /// The number of recorded tasks is the most that Ray lists, so that there may be more.
    #[display(
        "there may be more: Ray stops at {_0} tasks, as many as are in a list \
         (ray list tasks --limit 10000, job by job with --filter job_id=...)"
    )]
    Limit(usize),
    /// Attempts of tasks that the GCS forgot while it was recorded, or that had no room; some of them
    /// may be known from before.
    #[display(
        "the GCS forgot {_0} attempts of tasks while it was recorded: those of them that it was \
         not asked for before are missing (record with a shorter --interval, or set \
         RAY_task_events_max_num_task_in_gcs on the head)"
    )]
    Forgotten(usize),
}

impl Loss {
    /// The loss of so many cases; `None` if there are none.
    pub(super) fn of(kind: fn(usize) -> Self, count: usize) -> Option<Self> {
        (count > 0).then(|| kind(count))
    }
}
