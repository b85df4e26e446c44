//! The settings with which objects are checked and defaulted.

use std::sync::Arc;

use super::resource::Reconcile;
use super::{Limits, Modes};
use crate::plan::{Headroom, ScheduledStandby};
use crate::ray::feature_gate::{FeatureGate, GateSetting};
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
    /// The user names of KubeRay's operator, whose objects are created from objects that were
    /// already checked.
    pub operators: Vec<String>,
    /// The version of KubeRay's operator, by which rules go that differ between versions.
    pub kuberay: RayVersion,
    /// The feature gates of KubeRay's operator of which it is known whether they are on.
    pub feature_gates: Vec<GateSetting>,
    /// The values that defaults write.
    pub defaults: DefaultValues,
    /// The scaler of clusters without the annotation, and how Rayfit scales clusters.
    pub reconcile: ReconcileSettings,
}

/// The scaler of clusters without the annotation, and how Rayfit scales clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// The settings as policies write them, the value of the first policy that has one.
    pub written: Reconcile,
    /// Room to keep free for demand to come.
    pub headroom: Arc<Headroom>,
    /// The capacity that is kept ready at certain hours.
    pub schedules: Arc<[ScheduledStandby]>,
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

/// The account under which KubeRay's chart runs the operator, where it is installed as KubeRay's documentation says.
pub const KUBERAY_OPERATOR: &str = "system:serviceaccount:kuberay-system:kuberay-operator";

/// The `ClusterRoleBinding` of KubeRay's manifests and chart, which names the operator's account wherever it runs.
/// Whoever can write one could do anything to the Kubernetes cluster.
pub const KUBERAY_BINDING: &str = "kuberay-operator";

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

impl Settings {
    /// Whether a feature gate of KubeRay's operator is on, if somebody has said so.
    pub fn known_gate(&self, gate: &FeatureGate) -> Option<bool> {
        let known = self.feature_gates.iter().find(|(known, _)| *known == gate);
        known.map(|(_, is_on)| *is_on)
    }

    /// Whether a feature gate of KubeRay's operator is on: as somebody has said, or as its version has it.
    pub fn has_gate(&self, gate: &FeatureGate) -> bool {
        let by_default = self.kuberay >= gate.on_since;
        self.known_gate(gate).unwrap_or(by_default)
    }

    /// Whether `user` is KubeRay's operator.
    pub fn is_operator(&self, user: &str) -> bool {
        self.operators.iter().any(|operator| operator == user)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            modes: Modes::default(),
            limits: Limits::default(),
            allowed_modes: ReconcileMode::ALL.to_vec(),
            operators: vec![KUBERAY_OPERATOR.to_owned()],
            kuberay: KUBERAY,
            feature_gates: Vec::new(),
            defaults: DefaultValues::default(),
            reconcile: ReconcileSettings::default(),
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
