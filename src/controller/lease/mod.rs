//! Leases: which clusters this replica scales, and until when it may write for them.
//!
//! What is to be done with Leases is decided by [`ownership::lease`](crate::reconcile::ownership::lease).
//! [`keeper`] performs its steps by requests to the API server ([`stored`]), and [`fence`] is asked before
//! every write.
//!
//! In: the steps of the ledger. Out: requests about Leases, and for each cluster until when this replica may write.
//! Invariant: that time ends before another replica may take the shard.

pub mod fence;
pub mod keeper;
pub mod stored;

pub use fence::Fence;
