//! Leases: each shard of the clusters has one leader.
//!
//! Clusters are divided into a fixed number of shards ([`shards`]). Each shard has a Lease in Rayfit's
//! namespace that names its holder, and each replica has a Lease that says that it is alive, from which
//! all replicas compute the same fair share. [`record`] is what the Leases say, [`ledger`] and `division`
//! decide which steps a replica takes next, [`trust`] whether it may begin a write, and [`heartbeat`] when it renews the Lease by which
//! sidecars that stand by know that any replica is there. Time is an
//! argument of all of them.

mod division;
pub mod heartbeat;
#[cfg(test)]
mod interleavings;
pub mod ledger;
pub mod record;
pub mod shards;
pub mod trust;
