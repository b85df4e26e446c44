//! RF1xx: in-place resize, for objects that carry `ray.io/ippr`.
//!
//! In: an object with the annotation. Out: findings. Invariant: an object without the annotation has none.

pub mod autoscaler_version;
pub mod autoscaling_off;
pub mod cron_job;
pub mod group_resources;
pub mod invalid_limit;
pub mod kubernetes_version;
pub mod limit_above_nodes;
pub mod limit_above_pod;
pub mod limit_below_size;
pub mod limit_range;
pub mod memory_monitor;
pub mod no_requests;
pub mod nothing_to_gain;
pub mod ray_version;
pub mod resize_policy;
pub mod schema;
pub mod start_params;
pub mod unknown_group;
pub mod unknown_key;
