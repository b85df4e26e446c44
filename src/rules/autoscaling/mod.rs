//! RF2xx: autoscaling, and what KubeRay or the API server refuses in any cluster.

pub mod cpu_unknown;
pub mod gpu_mismatch;
pub mod group_name;
pub mod group_suspend;
pub mod head_takes_work;
pub mod labels_in_start_params;
pub mod max_unbounded;
pub mod needs_v2;
pub mod replica_bounds;
pub mod restart_policy;
pub mod start_command_env;
pub mod start_param_integer;
pub mod start_param_resources;
pub mod two_sources;
pub mod version_conflict;
