//! Whether this process scales a cluster: whether it may do so at all ([`eligibility`]), whether it
//! owns the cluster now ([`handover`]), which replica of the controller scales it ([`lease`]), and whether a sidecar has to
//! stand in for all of them ([`standby`]), by which settings ([`sidecar_settings`]). At most one autoscaler acts on a cluster,
//! whichever process is killed or delayed.
//!
//! In: the RayCluster, its pods, and Leases. Out: whether this process may write. Invariant: where that is not known, it
//! may not.

pub mod eligibility;
pub mod handover;
pub mod lease;
pub mod sidecar_settings;
pub mod standby;
