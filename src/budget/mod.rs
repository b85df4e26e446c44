//! Budgets: how much all clusters together may use that a RayPolicy matches.
//!
//! Each cluster has a grant, and uses no more than that. The grants of a budget stand in one small
//! record. A cluster's owner alone changes the cluster's entry, and every write of the record says
//! which version it was made from, so the sum of the grants never exceeds the budget, whichever
//! replicas write, in whatever order, and whatever fails. A round needs no write as long as the
//! cluster's grant is enough and nobody waits for what it does not use.
//!
//! - [`amounts`]: what a budget bounds: CPU, memory and GPUs
//! - [`shares`]: what each cluster should have: its fair share, by priority and weight
//! - [`record`]: the grants, and which entry an owner wants to write
//! - [`limit`]: what policies say, and what one budget lets a cluster use
//! - [`keeper`]: what an owner may count on, although its reads are old and its writes may be lost
//! - [`book`]: all budgets of one cluster from look to look
//!
//! `interleavings` is a test: it plays clusters, replicas and the record against each other.

pub mod amounts;
pub mod book;
#[cfg(test)]
mod interleavings;
pub mod keeper;
pub mod limit;
pub mod record;
pub mod shares;
