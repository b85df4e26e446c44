//! RF2xx: autoscaling, and what KubeRay or the API server refuses in any cluster.

pub mod custom_command;
pub mod group_labels;
pub mod group_resources_quantity;
pub mod idle_timeout;
pub mod job_deletion_policy;
pub mod kueue_managed;
pub mod memory_request_only;
pub mod name_length;
pub mod no_container;
pub mod no_worker_groups;
pub mod priority_ray_version;
pub mod sidecar_resources;
pub mod sidecar_version;
pub mod start_param_type;
