//! What a pod needs of its size, and whether anything else goes on with that.

use crate::plan::growth::resize::{Resize, ResizeProgress};

/// Amounts that differ by less are the same: Ray keeps four decimals.
pub(crate) const SAME: f64 = 1e-4;

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
