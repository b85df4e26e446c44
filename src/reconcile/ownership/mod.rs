//! Whether this process scales the cluster: may it at all ([`eligibility`]), and is it its turn
//! ([`handover`]). At most one autoscaler acts on a cluster, whatever is killed or late.

pub mod eligibility;
pub mod handover;
