//! Notes of the slices about the sizes of pods, beside the resize that Ray knows of.

use crate::plan::growth::in_use::InUse;
use crate::plan::outcome::plan::MemoryReason;
use crate::plan::slices::small_pods::reason::GapsSeen;
use crate::snapshot::history::{FollowedMemory, ShrinkFailures, SpareCpu};

/// Notes about the size of a pod that may be resized.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SizeNotes {
    /// Failures to make the pod smaller.
    pub(crate) shrink_failures: ShrinkFailures,
    /// The CPU that the pod has needed while it had some to spare.
    pub(crate) spare: Option<SpareCpu>,
    /// Seconds for which the CPU that the pod is now asked to give up was spare.
    pub(crate) shrinks_for: Option<f64>,
    /// The memory really in use, if that is known and followed.
    pub(crate) in_use: Option<InUse>,
    /// Ray's memory monitor is on in the pod.
    pub(crate) monitored: bool,
    /// The memory that the pod was given because its own was nearly full.
    pub(crate) followed: Option<FollowedMemory>,
    /// The reason why the pod is now asked to have another amount of memory, if that is for what is
    /// in use.
    pub(crate) memory_reason: Option<MemoryReason>,
    /// The time for which the pod is kept while it is idle, if that is another one than for others because it is small.
    pub(crate) kept: Option<SmallPodKeep>,
}

/// The time for which a small pod is kept while it is idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallPodKeep {
    pub(crate) seconds: f64,
    /// The gaps between bursts of work that were seen, and how many ended in that time, if it was
    /// learnt from them.
    pub(crate) of_gaps: Option<GapsSeen>,
}

impl SizeNotes {
    /// True if more work may have Ray's memory monitor kill some of it: half of the memory with which the
    /// pod started (`base`) is in use, and the monitor goes by that memory, however far the pod grows.
    pub(crate) fn is_crowded(&self, base: i64) -> bool {
        let half = |used: InUse| used.soon >= base / 2;
        self.monitored && self.in_use.is_some_and(half)
    }
}
