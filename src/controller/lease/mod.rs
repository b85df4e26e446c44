//! Leases: each shard of the clusters has one leader.
//!
//! Clusters are divided into a fixed number of shards; each shard has a Lease in our namespace that
//! names its holder, and each replica has one that says that it is alive, from which all replicas
//! compute the same fair share. [`record`] is what they say, [`ledger`] and
//! `division` decide (pure), [`keeper`]
//! talks to the API server ([`stored`]), [`fence`] is asked before every write.

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
