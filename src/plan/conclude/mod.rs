//! From packed nodes to what is to be done, and why.
//!
//! In comes what the phases leave behind; out come the plan ([`actions`]) and its report ([`explain`],
//! [`reasons`]). Nothing is decided here any more but how many pods are asked for [at once](launch) and
//! what becomes of pods whose group is [gone](orphans).

pub(crate) mod actions;
pub(crate) mod explain;
pub(crate) mod launch;
pub(crate) mod orphans;
pub(crate) mod reasons;
