//! The work budget of a decision. The demand of one cluster, however it is made up, must not take
//! the time of other clusters. Steps are counted and not timed, so that equal snapshots give equal
//! plans.

use std::cell::Cell;

/// The most steps that a decision may take, which is a second or two of one core. A cluster of
/// 10,000 nodes with a million tasks of a hundred shapes takes a tenth of it.
pub(crate) const BUDGET: u64 = 40_000_000;

/// The steps that are left. A step is about one resource or label of one request, compared with one
/// node.
#[derive(Debug)]
// A trial borrows the whole state, so steps are taken off through a shared reference.
pub(crate) struct WorkBudget(Cell<u64>);

impl WorkBudget {
    /// A budget of so many steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self(Cell::new(steps))
    }

    /// Spends steps. Returns whether any are left.
    pub(crate) fn spend(&self, steps: usize) -> bool {
        let rest = self.0.get().saturating_sub(steps as u64);
        self.0.set(rest);
        rest > 0
    }

    /// True once no steps are left. The decision is then incomplete, and must not be used.
    pub(crate) fn is_over(&self) -> bool {
        self.0.get() == 0
    }
}
