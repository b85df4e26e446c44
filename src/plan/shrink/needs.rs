//! What a pod needs of its size, and whether anything else goes on with that.

use crate::plan::demand::names::Name;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::nodes::node::{CountedAmounts, PlannedNode};

/// Amounts that differ by less are the same: Ray keeps four decimals.
pub(crate) const SAME: f64 = 1e-4;

/// How much of its CPU a node needs: what is in use, and what demand was placed on it.
pub(crate) fn needed(node: &PlannedNode, cpu: Name) -> f64 {
    let amount = node.amount(cpu);
    let total = amount.and_then(|amount| amount.total).unwrap_or(0.0);
    let free = |source| {
        let free = amount.and_then(|amount| amount.free[source as usize]);
        free.unwrap_or(total)
    };
    total - free(CountedAmounts::Free).min(free(CountedAmounts::Total))
}

/// Whether nothing else goes on with the size of the pod.
pub(crate) fn may_shrink(resize: &Resize) -> bool {
    resize.raylet.is_some()
        && resize.progress == ResizeProgress::Finished
        && resize.resizing_at.is_none()
        && resize.failed_at.is_none()
        && resize.barred_until.is_none()
        && !resize.noted_sync
        && resize.base.cpu > 0.0
}
