//! RF7xx: what KubeRay refuses in settings that are not about scaling.
//!
//! In: an object. Out: findings. Invariant: KubeRay, in the version and with the feature gates of the settings, refuses an object with a finding
//! (`tests/core/kuberay.rs` compares them with its own answers).

pub mod authentication;
pub mod cluster_upgrade;
pub mod cron_schedule;
pub mod feature_gate;
pub mod gcs_fault_tolerance;
pub mod job_deletion;
pub mod job_settings;
pub mod service_settings;
