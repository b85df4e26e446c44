//! Request batches: equal requests that are packed together.

use crate::plan::demand::shape::ShapeId;
use crate::plan::list::DemandIndex;

/// Equal requests of one demand, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestBatch {
    pub(crate) shape: ShapeId,
    pub(crate) count: u64,
    /// The demand that they belong to, by its number in the report.
    pub(crate) demand: DemandIndex,
}
