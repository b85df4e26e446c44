//! Whether this process scales a cluster: whether it may do so at all ([`eligibility`]), and
//! whether it owns the cluster now ([`handover`]). At most one autoscaler acts on a cluster,
//! whichever process is killed or delayed.

pub mod eligibility;
pub mod handover;
