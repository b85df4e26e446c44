//! Until when a process may write for its cluster, and what it reaches.

use std::time::Duration;

use rayfit_core::reconcile::Failure;
use rayfit_core::reconcile::ownership::lease::trust::{LONGEST_WRITE, may_begin};
use rayfit_core::simulate::moment::Moment;

use crate::faults::plan::Cut;

/// The time until which a process may write for a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Nobody else does.
    #[default]
    Always,
    /// As its Lease says; not at all without a moment.
    Until(Option<Moment>),
}

impl Trust {
    /// The failure of a write that would begin now, if none may begin.
    pub(crate) fn refusal(self, now: Moment) -> Option<Failure> {
        let Self::Until(until) = self else {
            return None;
        };
        let left = until.map(|until| Duration::from_secs_f64(until.since(now)));
        let begun = may_begin(left, LONGEST_WRITE).err();
        begun.map(|fenced| Failure::NotSent(fenced.to_string()))
    }
}

/// What a process may do, and reaches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessState {
    /// Until when it may write.
    pub(crate) trust: Trust,
    /// The messages that are lost while it is cut off.
    pub(crate) cut: Option<Cut>,
}
