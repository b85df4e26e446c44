//! The reason why small pods are kept for longer than others, with its text.

/// Gaps between bursts of work that a group has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GapsSeen {
    /// The number of gaps seen.
    pub count: u64,
    /// The number of them that ended in the time for which a pod is kept.
    pub ended: u64,
}

/// The reason why an idle pod is kept for longer than others: it is below its resize limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
#[display(
    "idle, and kept for {seconds} s because it is below its resize limits{}",
    of_gaps.map(|GapsSeen { count, ended }| {
        format!(": of {count} gaps between bursts {ended} ended in that time")
    }).unwrap_or_default()
)]
pub struct KeptSmall {
    /// Seconds for which it is kept while it is idle.
    pub seconds: i64,
    /// The gaps between bursts of work, and how many ended in that time, if it was learnt from
    /// them.
    pub of_gaps: Option<GapsSeen>,
}
