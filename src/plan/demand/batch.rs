//! Requests that are packed together.

use crate::plan::demand::shape::ShapeId;

/// Equal requests in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestBatch {
    pub(crate) shape: ShapeId,
    pub(crate) count: u64,
    /// The demand that they are of, by its number in the report.
    pub(crate) demand: usize,
}
