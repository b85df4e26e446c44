//! Leases: which clusters this replica scales, and until when it may write for them.
//!
//! What is to be done with Leases is decided by [`ownership::lease`](crate::reconcile::ownership::lease).
//! [`keeper`] performs its steps by requests to the API server ([`stored`]), and [`fence`] is asked before
//! every write.

pub mod fence;
pub mod keeper;
pub mod stored;

pub use fence::Fence;
