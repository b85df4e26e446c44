//! The Lease: whether this replica scales clusters, and until when it may write.
//!
//! Decisions about the Lease are made by [`ownership::lease`](rayfit_core::reconcile::ownership::lease).
//! [`keeper`] sends its requests to the API server ([`stored`]), and [`fence`] is asked before
//! every write.
//!
//! In: what the API server says of the Lease. Out: requests about it, and until when this replica may write.
//! Invariant: that time ends before another replica may lead.

pub mod fence;
pub mod keeper;
pub mod stored;

pub use fence::Fence;
pub use stored::LeaseOptions;
