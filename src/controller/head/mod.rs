//! The head of a cluster: where its GCS is ([`address`]), which credentials the GCS requires
//! ([`credentials`]), what it is asked beside its state ([`extras`]), why a cluster cannot be observed
//! ([`blind`]), and how much memory is in use in its pods ([`memory_watch`]).
//!
//! In: the head pod and the RayCluster. Out: what the GCS answers, or why it cannot be asked. Invariant: a token goes only
//! to an address of the cluster's own head pod.

pub mod address;
pub mod blind;
pub mod credentials;
pub mod extras;
pub mod memory_watch;
