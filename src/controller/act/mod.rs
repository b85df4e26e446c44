//! Acting on a cluster: [effects](perform) are requests to the API server ([`writer`]) and calls of
//! the GCS, and effects on pods need the write permission that a fresh read gives.
//!
//! In: effects. Out: their results. Invariant: no request leaves without the right to write at that moment.

pub mod perform;
pub mod writer;
