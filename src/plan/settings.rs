//! How to decide.

use crate::plan::strategy::Strategy;

/// How to decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanSettings {
    /// Ray's way, or better.
    pub strategy: Strategy,
    /// After how many seconds pods on their way that nothing needs are given up; `None`, as in
    /// Ray by default, keeps them.
    pub pending_idle_timeout_s: Option<f64>,
    /// Keep GPU nodes for requests that name a GPU (`AUTOSCALER_CONSERVE_GPU_NODES`).
    pub conserve_gpus: bool,
    /// No launch takes the workers of the cluster above so many. Those that are there stay.
    pub max_workers: u64,
}

/// The most workers of a cluster where nobody says otherwise.
pub const MAX_WORKERS: u32 = 10_000;

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            pending_idle_timeout_s: None,
            conserve_gpus: true,
            max_workers: MAX_WORKERS.into(),
        }
    }
}
