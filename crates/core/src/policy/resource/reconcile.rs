//! `reconcile`: the table of settings by which clusters are scaled.
//! [`RoundSettings::of`](crate::reconcile::RoundSettings::of) gives what is left out its value.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::headroom::{HeadroomSpec, Schedule};
use super::table::settings;
use crate::plan::Strategy;
use crate::ray::ReconcileMode;

settings! {
    /// Mode and settings by which clusters are scaled.
    #[derive(KubeSchema)]
    #[x_kube(
        validation = Rule::new("!has(self.mode) || !has(self.allowedModes) || self.mode in self.allowedModes")
            .message("mode must be one of allowedModes")
    )]
    pub struct Reconcile {
        /// The value of rayfit.dev/reconcile for objects without it (DF07).
        pub mode: ReconcileMode,

        /// The values that rayfit.dev/reconcile may have (RF402).
        #[schemars(length(max = 3))]
        pub allowed_modes: Vec<ReconcileMode>,

        /// The strategy: rayfit improves on Ray's autoscaler, ray decides exactly as it does.
        pub strategy: Strategy,

        /// The seconds after which pending pods are given up that nothing needs any more.
        #[schemars(range(min = 1, max = 86_400))]
        pub pending_idle_timeout_seconds: i64,

        /// Keep GPU nodes for requests that ask for a GPU.
        pub conserve_gpus: bool,

        /// The number of workers above which no launch takes a cluster; 10000 if it is left out.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub max_workers_per_cluster: i64,

        /// A limit on the pods that are launched in a time (strategy rayfit).
        pub scale_up: ScaleUpSpec,

        /// The seconds after which a pending pod that no Kubernetes node takes blocks its group, so that
        /// demand goes to other groups; 180 if it is left out (strategy rayfit).
        #[schemars(range(min = 0, max = 86_400))]
        pub unschedulable_seconds: i64,

        /// The seconds after which a pod that has a Kubernetes node and has not become a Ray node no longer
        /// counts as on its way; 600 if it is left out (strategy rayfit).
        #[schemars(range(min = 1, max = 86_400))]
        pub progress_deadline_seconds: i64,

        /// The seconds for which nodes above a maximum may finish their work before they are stopped;
        /// 600 if it is left out, and 0 stops them at once (strategy rayfit).
        #[schemars(range(min = 0, max = 604_800))]
        pub drain_timeout_seconds: i64,

        /// Mark workers with work, so that Karpenter and cluster-autoscaler leave their Kubernetes nodes
        /// alone (strategy rayfit).
        pub hold_busy_nodes: bool,

        /// Settings that keep pods small that can be resized in place (strategy rayfit).
        pub in_place: in InPlace,

        /// Room that is kept free for demand to come (strategy rayfit).
        pub headroom: HeadroomSpec,

        /// Room that is kept ready at certain hours (strategy rayfit).
        #[schemars(length(max = 20))]
        pub schedules: Vec<Schedule>,

        /// The delay after a failed request.
        pub back_off: in BackOff,
    }
}

/// A limit on how fast clusters grow.
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

settings! {
    /// Settings that keep pods small that can be resized in place.
    #[derive(JsonSchema)]
    pub struct InPlace {
        /// The seconds after which a pod that has grown gives up CPU that was spare all the time; 15
        /// if it is left out, and 0 never shrinks a pod.
        #[schemars(range(min = 0, max = 86_400))]
        pub shrink_after_seconds: i64,

        /// The longest time for which an idle pod is kept that is below its resize limits; 900 if it
        /// is left out, and 0 keeps it no longer than other pods.
        #[schemars(range(min = 0, max = 86_400))]
        pub keep_small_seconds: i64,

        /// The seconds for which a resize that the kubelet has deferred is left as it is, so that the
        /// scheduler may make room for it; 0 if it is left out, and 0 asks at once for what fits.
        #[schemars(range(min = 0, max = 86_400))]
        pub deferred_seconds: i64,

        /// Learn the time for which an idle pod is kept from the gaps between the bursts of work that its
        /// group has had, once some have been seen.
        pub learn_gaps: bool,

        /// Let a pod grow when the memory that is really in use comes near to what it has, before Ray or
        /// the kernel kills its work; true if it is left out.
        pub follow_memory: bool,

        /// Remove an idle pod before its idle timeout where demand that waits could use its room; true if
        /// it is left out.
        pub make_room: bool,

        /// Make new pods larger than their template where a single request needs that; it takes an install
        /// with `--initial-sizes`; false if it is left out.
        pub initial_sizes: bool,
    }
}

settings! {
    /// The delay after a failed request, which doubles each time.
    #[derive(JsonSchema)]
    pub struct BackOff {
        /// The delay after the first failure, in seconds.
        #[schemars(range(min = 1, max = 3_600))]
        pub initial_seconds: i64,

        /// The longest delay, in seconds.
        #[schemars(range(min = 1, max = 86_400))]
        pub max_seconds: i64,
    }
}

impl Reconcile {
    /// The fields for a sidecar: all but who scales.
    #[must_use]
    pub fn for_sidecar(&self) -> Self {
        Self {
            mode: None,
            allowed_modes: None,
            ..self.clone()
        }
    }
}
