//! The settings of a decision, besides the snapshot.

use std::sync::Arc;

use crate::plan::standby::spec::{Headroom, ScheduledStandby};
use crate::plan::strategy::Strategy;

/// The settings of a decision, besides the snapshot.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct PlanSettings {
    /// Whether to decide as Ray does, or with Rayfit's improvements.
    pub strategy: Strategy,
    /// After how many seconds pending nodes that no demand needs are given up; `None`, which is
    /// Ray's default, keeps them.
    pub pending_idle_timeout_s: Option<f64>,
    /// Keep GPU nodes for requests that name a GPU (`AUTOSCALER_CONSERVE_GPU_NODES`).
    pub conserve_gpus: bool,
    /// No launch takes the number of the cluster's workers above this. Workers that are there stay.
    pub max_workers: u64,
    /// How many pods are launched in how many seconds at the most (strategy rayfit); `None` sets no
    /// bound.
    pub scale_up: Option<ScaleUp>,
    /// After how many seconds a pod that no Kubernetes node takes blocks its group.
    pub unschedulable_s: f64,
    /// After how many seconds a pod with a Kubernetes node that has not become a Ray node no longer counts
    /// as on its way (strategy rayfit).
    pub progress_deadline_s: f64,
    /// For how many seconds nodes above a maximum may finish their work before they are stopped;
    /// 0 stops them at once.
    pub drain_timeout_s: f64,
    /// Whether workers with work are marked, so that node autoscalers leave their Kubernetes nodes
    /// alone (strategy rayfit).
    pub hold_busy_nodes: bool,
    /// After how many seconds a pod that has grown gives up CPU that was spare; `None` keeps it.
    pub shrink_after_s: Option<f64>,
    /// For how many seconds at the most an idle pod is kept that is below its resize limits: see
    /// `removal::keep`. `None` keeps it no longer than other pods.
    pub keep_small_s: Option<f64>,
    /// For how many seconds a resize that the kubelet has deferred is left as it is (strategy
    /// rayfit).
    pub deferred_s: f64,
    /// Whether small pods are kept by the gaps between bursts of work (strategy rayfit).
    pub learn_gaps: bool,
    /// Whether pods grow when the memory that is really in use comes near to what they have
    /// (strategy rayfit).
    pub follow_memory: bool,
    /// Whether idle pods go before their idle timeout where demand that waits could use their room
    /// (strategy rayfit).
    pub make_room: bool,
    /// Whether new pods are made larger than their template where a single request needs that
    /// (strategy rayfit).
    pub initial_sizes: bool,
    /// Room to keep free for demand to come (strategy rayfit).
    pub headroom: Arc<Headroom>,
    /// What is kept ready at certain hours (strategy rayfit).
    pub schedules: Arc<[ScheduledStandby]>,
}

/// How fast a cluster may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleUp {
    /// The most pods that are launched in that time.
    pub max_pods: u64,
    /// The time, in seconds.
    pub per_s: u32,
}

/// For how many seconds nodes above a maximum may finish their work where no RayPolicy says
/// otherwise.
pub const DRAIN_TIMEOUT_S: u32 = 600;

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            pending_idle_timeout_s: None,
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
            learn_gaps: true,
            follow_memory: true,
            make_room: true,
            initial_sizes: false,
            headroom: Arc::default(),
            schedules: Arc::default(),
        }
    }
}
