//! From packed nodes to what is to be done, and why.
//!
//! This module takes the results of the phases. It gives back the plan ([`actions`], [`resizes`]) and its report
//! ([`explain`], [`reasons`], [`sizes`]). Two things are still decided here: how many pods are
//! asked for [at once](launch), and what happens to pods whose group was
//! [removed](deletions::of_removed_groups).

pub(crate) mod actions;
pub(crate) mod deletions;
pub(crate) mod describe;
pub(crate) mod drains;
pub(crate) mod explain;
pub(crate) mod launch;
pub(crate) mod reasons;
pub(crate) mod resizes;
pub(crate) mod sizes;
