//! The settings with which objects are checked and defaulted.

use std::sync::Arc;

use super::{Limits, Modes};
use crate::plan::{
    DRAIN_TIMEOUT_S, FOLLOW_MEMORY, Headroom, KEEP_SMALL_S, LEARN_GAPS, MAKE_ROOM, MAX_WORKERS,
    PROGRESS_DEADLINE_S, SHRINK_AFTER_S, ScaleUp, ScheduledStandby, Strategy, UNSCHEDULABLE_S,
};
use crate::ray::{RayVersion, ReconcileMode};

/// The settings with which objects are checked and defaulted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The modes of rules that differ from the rules' own.
    pub modes: Modes,
    /// Limits on what objects may request.
    pub limits: Limits,
    /// The values of `rayfit.dev/reconcile` that users may choose.
    pub allowed_modes: Vec<ReconcileMode>,
    /// The user name of KubeRay's operator, whose objects are created from objects that were
    /// already checked.
    pub operator_user: String,
    /// The version of KubeRay's operator, by which rules go that differ between versions.
    pub kuberay: RayVersion,
    /// The values that defaults write.
    pub defaults: DefaultValues,
    /// Who scales clusters without the annotation, and how Rayfit scales clusters.
    pub reconcile: ReconcileSettings,
}

/// Who scales clusters without the annotation, and how Rayfit scales clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// The mode for objects without one (DF07); `None` leaves them without.
    pub mode: Option<ReconcileMode>,
    /// How to decide.
    pub strategy: Strategy,
    /// The seconds after which pending pods are given up that nothing needs; `None` keeps them.
    pub pending_idle_timeout_seconds: Option<u32>,
    /// Whether GPU nodes are kept for requests that ask for a GPU.
    pub conserve_gpus: bool,
    /// The number of workers above which no launch takes a cluster.
    pub max_workers_per_cluster: u32,
    /// How many pods are launched in how many seconds at the most; `None` sets no bound.
    pub scale_up: Option<ScaleUp>,
    /// The seconds after which a pod that no Kubernetes node takes blocks its group.
    pub unschedulable_seconds: u32,
    /// After how many seconds a pod with a Kubernetes node that has not become a Ray node no longer counts
    /// as on its way.
    pub progress_deadline_seconds: u32,
    /// The seconds for which nodes above a maximum may finish their work; 0 stops them at once.
    pub drain_timeout_seconds: u32,
    /// Whether workers with work are marked for node autoscalers.
    pub hold_busy_nodes: bool,
    /// How pods that can be resized in place are kept small.
    pub in_place: InPlaceSettings,
    /// Room to keep free for demand to come.
    pub headroom: Arc<Headroom>,
    /// What is kept ready at certain hours.
    pub schedules: Arc<[ScheduledStandby]>,
    /// How long to wait after a failed request.
    pub back_off: BackOffPolicy,
}

/// How pods that can be resized in place are kept small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that do not depend on each other"
)]
pub struct InPlaceSettings {
    /// The seconds after which a pod gives up CPU that was spare all the time; 0 stands for never.
    pub shrink_after_seconds: u32,
    /// The longest time for which an idle pod below its resize limits is kept, in seconds; 0 keeps
    /// it no longer than other pods.
    pub keep_small_seconds: u32,
    /// The seconds for which a resize that the kubelet has deferred is left as it is.
    pub deferred_seconds: u32,
    /// Whether that time is learnt from the gaps between bursts of work.
    pub learn_gaps: bool,
    /// Whether pods grow with the memory that is really in use.
    pub follow_memory: bool,
    /// Whether idle pods go before their idle timeout where demand that waits could use their room.
    pub make_room: bool,
    /// Whether new pods are made larger than their template where a single request needs that.
    pub initial_sizes: bool,
}

/// The delay after a failed request, which doubles each time. `None` stands for the value of
/// [`BackoffSettings`](crate::reconcile::settings::BackoffSettings).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackOffPolicy {
    /// The delay after the first failure, in seconds.
    pub initial_seconds: Option<u32>,
    /// The longest delay, in seconds.
    pub max_seconds: Option<u32>,
}

/// The values that defaults write.
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

/// The latest version of KubeRay that Rayfit knows. It counts as Ray does.
pub const KUBERAY: RayVersion = RayVersion::new(1, 7, 0);

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

/// Whether the request comes from a controller, which scales clusters in mode central. Each installation has one, in a
/// namespace of its own, so only the name of the account counts: it takes somebody off two warnings, and nothing else.
pub fn is_rayfit(user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:");
    let name = account.and_then(|account| account.split_once(':'));
    let ours = |known: &str| known.rsplit(':').next() == name.map(|(_, name)| name);
    RAYFIT_ACCOUNTS.into_iter().any(ours)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            modes: Modes::default(),
            limits: Limits::default(),
            allowed_modes: ReconcileMode::ALL.to_vec(),
            operator_user: KUBERAY_OPERATOR.to_owned(),
            kuberay: KUBERAY,
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
            // `AUTOSCALER_CONSERVE_GPU_NODES` is on in Ray too.
            conserve_gpus: true,
            max_workers_per_cluster: MAX_WORKERS,
            scale_up: None,
            unschedulable_seconds: UNSCHEDULABLE_S,
            progress_deadline_seconds: PROGRESS_DEADLINE_S,
            drain_timeout_seconds: DRAIN_TIMEOUT_S,
            hold_busy_nodes: false,
            in_place: InPlaceSettings::default(),
            headroom: Arc::default(),
            schedules: Arc::default(),
            back_off: BackOffPolicy::default(),
        }
    }
}

impl Default for InPlaceSettings {
    fn default() -> Self {
        Self {
            shrink_after_seconds: SHRINK_AFTER_S,
            keep_small_seconds: KEEP_SMALL_S,
            deferred_seconds: 0,
            learn_gaps: LEARN_GAPS,
            follow_memory: FOLLOW_MEMORY,
            make_room: MAKE_ROOM,
            initial_sizes: false,
        }
    }
}

impl Default for DefaultValues {
    fn default() -> Self {
        Self {
            image: IMAGE.to_owned(),
            // These are what Ray assumes without them (its `autoscaling_config.py`), so that
            // filling them in changes nothing.
            idle_timeout_seconds: 60,
            upscaling_mode: "Default".to_owned(),
            // KubeRay gives the container the same (`BuildAutoscalerContainer`).
            ray_sidecar: SidecarSize::new("500m", "512Mi"),
            rayfit_sidecar: SidecarSize::new("50m", "64Mi"),
            head_takes_no_work: false,
        }
    }
}
