//! `limits` and `defaults`: the values that a policy sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;

/// Limits on what Ray objects may request. Their rules have the mode that this policy sets for
/// them, or Enforce if it sets none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSpec {
    /// The most workers that the groups of a cluster may have together (RF501).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_workers_per_cluster: Option<i64>,

    /// The most workers that one group may have (RF502).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_workers_per_group: Option<i64>,

    /// The most CPU of a pod, at its resize limit in ray.io/ippr if it has one (RF503).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cpu_per_pod: Option<Amount>,

    /// The most memory of a pod, at its resize limit in ray.io/ippr if it has one (RF503).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_per_pod: Option<Amount>,

    /// The most GPUs of a cluster with all its workers (RF504).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_gpus_per_cluster: Option<i64>,

    /// The longest time, in seconds, that an idle worker may be kept (RF505).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_idle_timeout_seconds: Option<i64>,

    /// The most CPU of a cluster with all its workers, at their resize limits (RF506).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cpu_per_cluster: Option<Amount>,

    /// The most memory of a cluster with all its workers, at their resize limits (RF506).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_per_cluster: Option<Amount>,
}

/// Values that defaults fill in instead of Rayfit's own.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defaults {
    /// Requests and limits of Ray's autoscaler container (DF04).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_container: Option<ContainerSize>,

    /// autoscalerOptions.idleTimeoutSeconds (DF05).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub idle_timeout_seconds: Option<i64>,

    /// autoscalerOptions.upscalingMode (DF05).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^(Default|Aggressive|Conservative)$"))]
    pub upscaling_mode: Option<String>,

    /// Rayfit's container, for the clusters that it scales (DF06).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rayfit_container: Option<RayfitContainer>,

    /// Set num-cpus of heads to "0" where it is absent, so that no tasks run there (DF08).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_takes_no_work: Option<bool>,
}

/// Requests and limits of a container, which are equal.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSize {
    /// CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Amount>,

    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
}

/// Rayfit's container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RayfitContainer {
    /// Its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,

    /// CPU, requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Amount>,

    /// Memory, requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
}
