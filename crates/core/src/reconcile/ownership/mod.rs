//! Ownership of clusters: whether this process may scale one at all ([`eligibility`]), whether it owns it now
//! ([`handover`], by what its [`record`] says), which replica of the controller is the leader ([`lease`]), and by which
//! settings a sidecar scales it ([`sidecar_settings`]). At most one autoscaler acts on a cluster, whichever process is
//! killed or delayed.
//!
//! In: the RayCluster, its pods, and Leases. Out: whether this process may write. Invariant: where that is not known, it
//! may not.

pub mod eligibility;
pub mod handover;
pub mod lease;
pub mod record;
pub mod sidecar_settings;
