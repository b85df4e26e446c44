//! RF2xx: autoscaling, and what KubeRay or the API server refuses in any cluster.
//!
//! In: an object. Out: findings. Invariant: a field of a wrong type is the API server's to refuse, and no finding.

pub mod container_resources;
pub mod cpu_unknown;
pub mod custom_command;
pub mod gang_scheduling;
pub mod gpu_mismatch;
pub mod graceful_end;
pub mod group_labels;
pub mod group_name;
pub mod group_resources_quantity;
pub mod group_suspend;
pub mod head_architecture;
pub mod head_takes_work;
pub mod idle_timeout;
pub mod job_deletion_policy;
pub mod kueue_managed;
pub mod labels_in_start_params;
pub mod max_unbounded;
pub mod memory_request_only;
pub mod name_length;
pub mod needs_v2;
pub mod network_policy;
pub mod no_container;
pub mod no_spec;
pub mod no_worker_groups;
pub mod priority_ray_version;
pub mod pull_secret;
pub mod ray_container;
pub mod replica_bounds;
pub mod restart_policy;
pub mod sidecar_resources;
pub mod sidecar_version;
pub mod start_command_env;
pub mod start_param_integer;
pub mod start_param_resources;
pub mod start_param_type;
pub mod tpu_topology;
pub mod two_sources;
pub mod uncounted_devices;
pub mod unread_fields;
pub mod version_conflict;
