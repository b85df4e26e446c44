//! RF5xx: limits, checked only where a RayPolicy sets them.

pub mod budget;
pub mod cluster_size;
mod extent;
pub mod gpus_per_cluster;
pub mod idle_timeout;
pub mod pod_size;
pub mod workers_per_cluster;
pub mod workers_per_group;
