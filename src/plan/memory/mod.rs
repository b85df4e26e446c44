//! Memory that one decision stores for the next ([`remember`]): launches and their times, nodes above a maximum that
//! drain, groups whose pods failed to appear ([`availability`]), would not start ([`blocked`]) or ended too early
//! ([`early_ends`], until Ray has started in one), groups whose pods failed to grow ([`growth_backoff`]), their work
//! ([`bursts`]), placement groups whose pods did not all get a Kubernetes node ([`gangs`]), and replicas that were
//! asked for together and not admitted ([`jumps`], by their [`gated`] pods; [`attempts`] has both).
//!
//! In: the snapshot's history and the decision. Out: the history for the next decision. Invariant:
//! everything in it may be lost, and it is bounded by the cluster's own objects.

pub(crate) mod attempts;
pub(crate) mod availability;
pub(crate) mod blocked;
pub(crate) mod bursts;
pub(crate) mod early_ends;
pub(crate) mod gangs;
pub(crate) mod gated;
pub(crate) mod growth_backoff;
pub(crate) mod jumps;
pub(crate) mod remember;
