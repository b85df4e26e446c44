//! Leases: each shard of the clusters has one leader.
//!
//! Clusters are divided into a fixed number of shards. Each shard has a Lease in Rayfit's namespace
//! that names its holder, and each replica has a Lease that says that it is alive, from which all
//! replicas compute the same fair share. [`record`] is what the Leases say, [`ledger`] and
//! `division` decide (both pure), [`keeper`] performs the steps by requests to the API server
//! ([`stored`]), and [`fence`] is asked before every write.

mod division;
pub mod fence;
#[cfg(test)]
mod interleavings;
pub mod keeper;
pub mod ledger;
pub mod record;
pub mod shards;
pub mod stored;

pub use fence::{Fence, Fenced};
pub use record::Terms;
pub use shards::shard_of;
