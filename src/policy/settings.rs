//! The settings under which objects are judged and defaulted.

use super::{Limits, Modes};
use crate::plan::{MAX_WORKERS, Strategy};
use crate::ray::ReconcileMode;

/// The settings under which objects are judged and defaulted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How far rules are turned on, where not as far as by themselves.
    pub modes: Modes,
    /// What objects may ask for.
    pub limits: Limits,
    /// The values of `rayfit.dev/reconcile` that users may choose.
    pub allowed_modes: Vec<ReconcileMode>,
    /// The user name of KubeRay's operator, whose objects are made from judged parents.
    pub operator_user: String,
    /// The user names under which Rayfit scales clusters.
    pub rayfit_users: Vec<String>,
    /// What defaults write.
    pub defaults: DefaultValues,
    /// Who scales clusters that do not say so, and how Rayfit does it.
    pub reconcile: ReconcileSettings,
}

/// Who scales clusters that do not say so, and how Rayfit does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// The mode that objects get which have none (DF07); `None` leaves them without.
    pub mode: Option<ReconcileMode>,
    /// How to decide.
    pub strategy: Strategy,
    /// After how many seconds pods on their way that nothing needs are given up; `None` keeps
    /// them.
    pub pending_idle_timeout_seconds: Option<u32>,
    /// Keep GPU nodes for requests that name a GPU.
    pub conserve_gpus: bool,
    /// No launch takes the workers of a cluster above so many.
    pub max_workers_per_cluster: u32,
    /// How long to wait after a failed request.
    pub back_off: BackOffSettings,
}

/// How long to wait after a failed request: twice as long each time. What is `None` is as
/// [`reconcile`](crate::reconcile::settings::BackoffSettings) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackOffSettings {
    /// After the first failure, in seconds.
    pub initial_seconds: Option<u32>,
    /// At most, in seconds.
    pub max_seconds: Option<u32>,
}

/// What defaults write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultValues {
    /// Rayfit's image, for clusters that it scales (DF06).
    pub image: String,
    /// `idleTimeoutSeconds` (DF05), in seconds.
    pub idle_timeout_seconds: i64,
    /// `upscalingMode` (DF05).
    pub upscaling_mode: String,
    /// Requests and limits of Ray's autoscaler container (DF04).
    pub ray_sidecar: SidecarSize,
    /// Requests and limits of Rayfit's container (DF06).
    pub rayfit_sidecar: SidecarSize,
    /// Give the head `num-cpus: "0"` (DF08).
    pub head_takes_no_work: bool,
}

/// Requests and limits of the autoscaler container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarSize {
    /// A Kubernetes quantity.
    pub cpu: String,
    /// A Kubernetes quantity.
    pub memory: String,
}

impl SidecarSize {
    /// A size.
    pub fn new(cpu: &str, memory: &str) -> Self {
        Self {
            cpu: cpu.to_owned(),
            memory: memory.to_owned(),
        }
    }
}

/// The account under which KubeRay's manifests and chart run the operator.
pub const KUBERAY_OPERATOR: &str = "system:serviceaccount:kuberay-system:kuberay-operator";

/// The accounts under which the install manifests let Rayfit scale clusters: that of its controller,
/// and that of an install with a single Deployment.
pub const RAYFIT_ACCOUNTS: [&str; 2] = [
    "system:serviceaccount:rayfit-system:rayfit-controller",
    "system:serviceaccount:rayfit-system:rayfit",
];

/// The image that a release of this version is published as.
pub const IMAGE: &str = concat!("rayfit:", env!("CARGO_PKG_VERSION"));

impl Settings {
    /// The request comes from what scales clusters in mode central.
    pub fn is_rayfit(&self, user: &str) -> bool {
        self.rayfit_users.iter().any(|rayfit| rayfit == user)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            modes: Modes::default(),
            limits: Limits::default(),
            allowed_modes: ReconcileMode::ALL.to_vec(),
            operator_user: KUBERAY_OPERATOR.to_owned(),
            rayfit_users: RAYFIT_ACCOUNTS.map(str::to_owned).to_vec(),
            defaults: DefaultValues::default(),
            reconcile: ReconcileSettings::default(),
        }
    }
}

impl Default for ReconcileSettings {
    fn default() -> Self {
        Self {
            mode: None,
            strategy: Strategy::default(),
            pending_idle_timeout_seconds: None,
            conserve_gpus: true,
            max_workers_per_cluster: MAX_WORKERS,
            back_off: BackOffSettings::default(),
        }
    }
}

impl Default for DefaultValues {
    fn default() -> Self {
        Self {
            image: IMAGE.to_owned(),
            idle_timeout_seconds: 60,
            upscaling_mode: "Default".to_owned(),
            ray_sidecar: SidecarSize::new("500m", "512Mi"),
            rayfit_sidecar: SidecarSize::new("50m", "64Mi"),
            head_takes_no_work: false,
        }
    }
}
