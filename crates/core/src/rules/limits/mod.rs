//! RF5xx: limits, checked only where a RayPolicy sets them.
//!
//! In: an object, and the limits of its policies. Out: findings. Invariant: without a policy nothing is reported.

pub mod cluster_size;
mod extent;
pub mod gpus_per_cluster;
pub mod idle_timeout;
pub mod pod_size;
pub mod workers_per_cluster;
pub mod workers_per_group;
