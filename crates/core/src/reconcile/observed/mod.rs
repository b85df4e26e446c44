//! Observations of a cluster besides its demand: whether anything goes on in it, whether it can be
//! observed at all, who uses it, how full its nodes' memory is, and how soon it is looked at again.
//!
//! In: snapshots, and what earlier ones said. Out: when to look again, and whether the cluster counts as observed, in use
//! or full. Invariant: what is not known never counts as idle.

pub(crate) mod activity;
pub mod blind;
pub mod cadence;
pub mod clock_skew;
pub mod memory_report;
pub mod outage;
pub(crate) mod stabilisation;
pub mod users;
