//! Budgets over several clusters: the records of what each cluster is granted, and how a cluster keeps
//! to its grants.
//!
//! The record of a budget is a Lease beside those of the shards, `rayfit-budget-<policy>`, with the grants
//! in an annotation. It is written by compare-and-swap, and watched together with the other Leases. What
//! may be used and what is to be written is decided by [`book`](crate::budget::book), from values.
//!
//! - [`stored`]: the record as a Lease
//! - [`desk`]: the records as they were last seen or read, for all clusters of the process
//! - [`cluster`]: the budgets of one cluster
//! - [`read`]: its objects as they are stored
//!
//! Invariant: a record is written under the Lease of the cluster's shard only, as its objects are.

pub mod cluster;
pub mod desk;
pub mod read;
pub mod stored;
