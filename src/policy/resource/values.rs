//! `limits`, `defaults` and `reconcile`: the values that a policy sets.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::headroom::{HeadroomSpec, Schedule};
use crate::plan::Strategy;
use crate::ray::ReconcileMode;

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

/// Who scales the clusters, and how.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!has(self.mode) || !has(self.allowedModes) || self.mode in self.allowedModes")
        .message("mode must be one of allowedModes")
)]
#[serde(rename_all = "camelCase")]
pub struct Reconcile {
    /// The value of rayfit.dev/reconcile for objects without it (DF07).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ReconcileMode>,

    /// The values that rayfit.dev/reconcile may have (RF402).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3))]
    pub allowed_modes: Option<Vec<ReconcileMode>>,

    /// How to decide: rayfit improves on Ray's autoscaler, ray decides exactly as it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,

    /// The seconds after which pending pods are given up that nothing needs any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub pending_idle_timeout_seconds: Option<i64>,

    /// Whether GPU nodes are kept for requests that ask for a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conserve_gpus: Option<bool>,

    /// The number of workers above which no launch takes a cluster; 10000 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_workers_per_cluster: Option<i64>,

    /// How many pods are launched in how many seconds at the most (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScaleUpSpec>,

    /// The seconds after which a pending pod that no Kubernetes node takes blocks its group, so that
    /// demand goes to other groups; 180 if it is left out (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub unschedulable_seconds: Option<i64>,

    /// The seconds after which a pod that has a Kubernetes node and has not become a Ray node no longer
    /// counts as on its way; 600 if it is left out (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub progress_deadline_seconds: Option<i64>,

    /// The seconds for which nodes above a maximum may finish their work before they are stopped;
    /// 600 if it is left out, and 0 stops them at once (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 604_800))]
    pub drain_timeout_seconds: Option<i64>,

    /// Whether workers with work are marked, so that Karpenter and cluster-autoscaler leave their
    /// Kubernetes nodes alone (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_busy_nodes: Option<bool>,

    /// How pods that can be resized in place are kept small (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<InPlace>,

    /// Room that is kept free for demand to come (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<HeadroomSpec>,

    /// What is kept ready at certain hours (strategy rayfit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub schedules: Option<Vec<Schedule>>,

    /// The delay after a failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_off: Option<BackOff>,
}

/// How fast clusters grow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleUpSpec {
    /// The most pods that are launched in the time below.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_pods: i64,

    /// The time, in seconds.
    #[schemars(range(min = 1, max = 86_400))]
    pub per_seconds: i64,
}

/// How pods that can be resized in place are kept small.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlace {
    /// The seconds after which a pod that has grown gives up CPU that was spare all the time; 15
    /// if it is left out, and 0 never shrinks a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub shrink_after_seconds: Option<i64>,

    /// The longest time for which an idle pod is kept that is below its resize limits; 900 if it
    /// is left out, and 0 keeps it no longer than other pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub keep_small_seconds: Option<i64>,

    /// The seconds for which a resize that the kubelet has deferred is left as it is, so that the
    /// scheduler may make room for it; 0 if it is left out, and 0 asks at once for what fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub deferred_seconds: Option<i64>,
    /// Whether the time for which an idle pod is kept is learnt from the gaps between the bursts of work
    /// that its group has had, once some have been seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn_gaps: Option<bool>,

    /// Whether a pod grows when the memory that is really in use comes near to what it has, before
    /// Ray or the kernel kills its work; true if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_memory: Option<bool>,

    /// Whether an idle pod goes before its idle timeout where demand that waits could use its room;
    /// true if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub make_room: Option<bool>,

    /// Whether new pods are made larger than their template where a single request needs that; it
    /// takes an install with `--initial-sizes`; false if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_sizes: Option<bool>,
}

/// The delay after a failed request, which doubles each time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackOff {
    /// The delay after the first failure, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600))]
    pub initial_seconds: Option<i64>,

    /// The longest delay, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub max_seconds: Option<i64>,
}
