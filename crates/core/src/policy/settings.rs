//! The settings with which objects are checked and defaulted.

use std::sync::Arc;

use super::Modes;
use super::resource::{Defaults, Limits, RayfitContainer, Reconcile};
use crate::json::Json;
use crate::plan::{Headroom, ScheduledStandby};
use crate::ray::feature_gate::{FeatureGate, GateSetting};
use crate::ray::{Group, RayObject, RayVersion, ReconcileMode};

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
    /// The feature gates of KubeRay's operator whose state the options name.
    pub feature_gates: Vec<GateSetting>,
    /// The values that defaults write instead of their own.
    pub defaults: Defaults,
    /// The scaler of clusters without the annotation, and how Rayfit scales clusters.
    pub reconcile: ReconcileSettings,
}

/// The scaler of clusters without the annotation, and how Rayfit scales clusters, as one policy or
/// several together have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// The settings as policies write them, but for the two below, which are compiled.
    pub written: Reconcile,
    /// Room to keep free for demand to come.
    pub headroom: Option<Arc<Headroom>>,
    /// The capacity that is kept ready at certain hours.
    pub schedules: Option<Arc<[ScheduledStandby]>>,
}

impl ReconcileSettings {
    /// Writes what is set here over `target`.
    pub(crate) fn write_over(&self, target: &mut Self) {
        self.written.write_over(&mut target.written);
        if self.headroom.is_some() {
            target.headroom.clone_from(&self.headroom);
        }
        if self.schedules.is_some() {
            target.schedules.clone_from(&self.schedules);
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

/// The architectures for which there is an image of each release, as Kubernetes calls them.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// Recognizes a controller, which scales clusters in mode central. Each installation has one, in a
/// namespace of its own, so only the name of the account counts: it takes somebody off two warnings, and nothing else.
pub fn is_rayfit(user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:");
    let name = account.and_then(|account| account.split_once(':'));
    let ours = |account: &str| account.rsplit(':').next() == name.map(|(_, name)| name);
    RAYFIT_ACCOUNTS.into_iter().any(ours)
}

impl Defaults {
    /// The values of flags. Those that are the usual ones set nothing.
    pub fn of_flags(image: String, head_takes_no_work: bool) -> Self {
        Self {
            rayfit_container: (image != IMAGE).then(|| RayfitContainer {
                image: Some(image),
                ..RayfitContainer::default()
            }),
            head_takes_no_work: head_takes_no_work.then_some(true),
            ..Self::default()
        }
    }
}

impl Settings {
    /// Rayfit's image, for the clusters that it scales (DF06).
    pub fn image(&self) -> &str {
        let container = self.defaults.rayfit_container.as_ref();
        let image = container.and_then(|container| container.image.as_deref());
        image.unwrap_or(IMAGE)
    }

    /// The Secret with which heads pull that image, if a policy names one.
    pub fn pull_secret(&self) -> Option<&str> {
        let container = self.defaults.rayfit_container.as_ref();
        container.and_then(|container| container.image_pull_secret.as_deref())
    }

    /// The architectures of that image, as Kubernetes calls them.
    pub fn architectures(&self) -> Vec<&str> {
        let container = self.defaults.rayfit_container.as_ref();
        let stated = container.and_then(|container| container.architectures.as_deref());
        let stated = stated.filter(|stated| !stated.is_empty());
        stated.map_or(ARCHITECTURES.to_vec(), |stated| {
            stated.iter().map(String::as_str).collect()
        })
    }

    /// The head group of an object, if KubeRay puts that image into its pods.
    pub fn head_with_image<'a>(&self, object: &'a RayObject<'a>) -> Option<&'a Group<'a>> {
        let cluster = object.cluster.as_ref()?;
        let image = cluster.autoscaler_option("image").and_then(Json::as_str);
        let is_ours = cluster.autoscaling() && object.reconcile_mode().is_ours();
        let is_this = image.is_none_or(|image| image == self.image());
        cluster.head.as_ref().filter(|_| is_ours && is_this)
    }

    /// The state of a feature gate of KubeRay's operator, if `--kuberay-feature-gates` names it.
    pub fn stated_gate(&self, gate: &FeatureGate) -> Option<bool> {
        let setting = self.feature_gates.iter().find(|(name, _)| *name == gate);
        setting.map(|(_, is_on)| *is_on)
    }

    /// Finds a feature gate of KubeRay's operator on: by the option, or else by KubeRay's version.
    pub fn has_gate(&self, gate: &FeatureGate) -> bool {
        let by_default = self.kuberay >= gate.on_since;
        self.stated_gate(gate).unwrap_or(by_default)
    }

    /// Recognizes KubeRay's operator.
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
            defaults: Defaults::default(),
            reconcile: ReconcileSettings::default(),
        }
    }
}
