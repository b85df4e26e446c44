//! The table of settings of a decision. The types of those that only one slice has lie beside that slice.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::plan::slice::Slice;
use crate::plan::slices::standby::settings::{Headroom, ScheduledStandby};
use crate::plan::strategy::Strategy;

/// Declares the settings: one row for each, with its type and its value where no RayPolicy says otherwise.
macro_rules! settings {
    ($($(#[$about:meta])* $name:ident: $kind:ty = $usual:expr,)*) => {
        /// The settings of a decision, besides the snapshot.
        #[derive(Debug, Clone, PartialEq)]
        pub struct PlanSettings {
            $($(#[$about])* pub $name: $kind,)*
        }

        impl Default for PlanSettings {
            fn default() -> Self {
                Self { $($name: $usual,)* }
            }
        }
    };
}

settings! {
    /// The strategy: Ray's decisions, or Rayfit's improvements on them.
    strategy: Strategy = Strategy::default(),
    /// Seconds after which pending nodes that no demand needs are given up; `None`, which is
    /// Ray's default, keeps them.
    pending_idle_timeout_s: Option<f64> = None,
    /// The slices that strategy rayfit decides without.
    left_out: BTreeSet<Slice> = BTreeSet::new(),
    /// Keep GPU nodes for requests that name a GPU (`AUTOSCALER_CONSERVE_GPU_NODES`).
    conserve_gpus: bool = true,
    /// No launch takes the number of the cluster's workers above this. Workers that are there stay.
    max_workers: u64 = 10_000,
    /// The limit on pods launched per time (strategy rayfit); `None` sets no bound.
    scale_up: Option<ScaleUp> = None,
    /// Seconds after which a pod that no Kubernetes node takes blocks its group. (A node autoscaler has made a node
    /// by then, as a rule.)
    unschedulable_s: f64 = 180.0,
    /// Seconds after which a pod with a Kubernetes node that has not become a Ray node no longer counts
    /// as on its way (strategy rayfit). (As of a Deployment without `progressDeadlineSeconds`.)
    progress_deadline_s: f64 = 600.0,
    /// Seconds for which nodes above a maximum may finish their work before they are stopped;
    /// 0 stops them at once.
    drain_timeout_s: f64 = 600.0,
    /// Marks workers with work, so that node autoscalers leave their Kubernetes nodes
    /// alone (strategy rayfit).
    hold_busy_nodes: bool = false,
    /// Seconds after which a pod that has grown gives up CPU that was spare; `None` keeps it.
    shrink_after_s: Option<f64> = Some(15.0),
    /// The most seconds for which an idle pod is kept that is below its resize limits: see
    /// `slices::small_pods`. `None` keeps it no longer than other pods.
    keep_small_s: Option<f64> = Some(900.0),
    /// Seconds for which a resize that the kubelet has deferred is left as it is (strategy
    /// rayfit).
    deferred_s: f64 = 0.0,
    /// Makes new pods larger than their template where what they are for needs that
    /// (strategy rayfit).
    initial_sizes: Option<SizedFor> = None,
    /// Room to keep free for demand to come (strategy rayfit).
    headroom: Arc<Headroom> = Arc::default(),
    /// Headroom and minima that hold at certain hours (strategy rayfit).
    schedules: Arc<[ScheduledStandby]> = Arc::default(),
}

/// The demand of a new pod that decides on its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizedFor {
    /// The largest single request: others fit as well once the pod has grown.
    Request,
    /// All that is placed on the pod, so that nothing waits for its growth: the limit to which `make outcome` compares.
    Demand,
}

/// The limit on how fast a cluster grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleUp {
    /// The most pods that are launched in that time.
    pub max_pods: u64,
    /// The time, in seconds.
    pub per_s: u32,
}

impl PlanSettings {
    /// True unless a slice is left out.
    pub(crate) fn has(&self, slice: Slice) -> bool {
        !self.left_out.contains(&slice)
    }

    /// Decides by a slice, and gives the default value where it is left out.
    pub(crate) fn with<T: Default>(&self, slice: Slice, decide: impl FnOnce() -> T) -> T {
        if self.has(slice) {
            decide()
        } else {
            T::default()
        }
    }
}
