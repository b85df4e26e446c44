//! The settings of a decision, besides the snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::plan::slice::Slice;
use crate::plan::strategy::Strategy;
use crate::quantity::Quantity;
use crate::schedule::Hours;

/// The settings of a decision, besides the snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSettings {
    /// The strategy: Ray's decisions, or Rayfit's improvements on them.
    pub strategy: Strategy,
    /// Seconds after which pending nodes that no demand needs are given up; `None`, which is
    /// Ray's default, keeps them.
    pub pending_idle_timeout_s: Option<f64>,
    /// The slices that strategy rayfit decides without.
    pub left_out: BTreeSet<Slice>,
    /// Keep GPU nodes for requests that name a GPU (`AUTOSCALER_CONSERVE_GPU_NODES`).
    pub conserve_gpus: bool,
    /// No launch takes the number of the cluster's workers above this. Workers that are there stay.
    pub max_workers: u64,
    /// The limit on pods launched per time (strategy rayfit); `None` sets no bound.
    pub scale_up: Option<ScaleUp>,
    /// Seconds after which a pod that no Kubernetes node takes blocks its group.
    pub unschedulable_s: f64,
    /// Seconds after which a pod with a Kubernetes node that has not become a Ray node no longer counts
    /// as on its way (strategy rayfit).
    pub progress_deadline_s: f64,
    /// Seconds for which nodes above a maximum may finish their work before they are stopped;
    /// 0 stops them at once.
    pub drain_timeout_s: f64,
    /// Marks workers with work, so that node autoscalers leave their Kubernetes nodes
    /// alone (strategy rayfit).
    pub hold_busy_nodes: bool,
    /// Seconds after which a pod that has grown gives up CPU that was spare; `None` keeps it.
    pub shrink_after_s: Option<f64>,
    /// The most seconds for which an idle pod is kept that is below its resize limits: see
    /// `slices::small_pods`. `None` keeps it no longer than other pods.
    pub keep_small_s: Option<f64>,
    /// Seconds for which a resize that the kubelet has deferred is left as it is (strategy
    /// rayfit).
    pub deferred_s: f64,
    /// Makes new pods larger than their template where what they are for needs that
    /// (strategy rayfit).
    pub initial_sizes: Option<SizedFor>,
    /// Room to keep free for demand to come (strategy rayfit).
    pub headroom: Arc<Headroom>,
    /// Headroom and minima that hold at certain hours (strategy rayfit).
    pub schedules: Arc<[ScheduledStandby]>,
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

/// Room to keep free for demand to come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headroom {
    /// CPUs, in percent of those in use.
    pub share_percent: u32,
    /// CPUs. Of the share and of these the larger number counts.
    pub cpus: u32,
    /// Requests for which there is to be room besides.
    pub requests: Vec<HeadroomRequest>,
}

/// Requests for which there is to be room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomRequest {
    /// The resources of one of them, in Ray's units.
    pub resources: BTreeMap<String, Quantity>,
    /// The number of them.
    pub count: u32,
}

/// Headroom and minima that hold at certain hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledStandby {
    /// The name that plans give as the reason.
    pub name: String,
    /// The hours.
    pub hours: Hours,
    /// The least replicas by worker group.
    pub min_replicas: BTreeMap<String, u32>,
    /// The headroom while the hours last.
    pub headroom: Headroom,
}

/// Seconds for which nodes above a maximum may finish their work where no RayPolicy says
/// otherwise.
pub const DRAIN_TIMEOUT_S: u32 = 600;

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            pending_idle_timeout_s: None,
            left_out: BTreeSet::new(),
            conserve_gpus: true,
            max_workers: 10_000,
            scale_up: None,
            // A node autoscaler has made a node by then, as a rule.
            unschedulable_s: 180.0,
            // As of a Deployment without `progressDeadlineSeconds`.
            progress_deadline_s: 600.0,
            drain_timeout_s: DRAIN_TIMEOUT_S.into(),
            hold_busy_nodes: false,
            shrink_after_s: Some(15.0),
            keep_small_s: Some(900.0),
            deferred_s: 0.0,
            initial_sizes: None,
            headroom: Arc::default(),
            schedules: Arc::default(),
        }
    }
}

impl PlanSettings {
    /// True unless a slice is left out.
    pub(crate) fn has(&self, slice: Slice) -> bool {
        !self.left_out.contains(&slice)
    }

    /// What a slice gives; nothing where it is left out.
    pub(crate) fn with<T: Default>(&self, slice: Slice, decide: impl FnOnce() -> T) -> T {
        if self.has(slice) {
            decide()
        } else {
            T::default()
        }
    }
}
