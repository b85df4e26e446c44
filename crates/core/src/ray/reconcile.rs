//! The autoscaler that scales a cluster: the annotation `rayfit.dev/reconcile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Misread;

/// The annotation that holds a [`ReconcileMode`].
pub const ANNOTATION: &str = "rayfit.dev/reconcile";

/// The annotation in which Rayfit notes which of its autoscalers is at work: `central`,
/// `sidecar/<uid of the head pod>`, `nobody`, or `taking/<version>/` and one of the first two.
pub const RECORD: &str = "rayfit.dev/scaled-by";

/// The annotation in which the central Rayfit writes down what RayPolicies say about how the sidecar is to
/// scale the cluster, which may not read them. Its value is as `spec.reconcile` of a RayPolicy, in JSON.
pub const SETTINGS: &str = "rayfit.dev/settings";

/// The prefix of all annotations of Rayfit.
pub const PREFIX: &str = "rayfit.dev/";

/// The scaler of a cluster.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Deserialize,
    Serialize,
    JsonSchema,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = Misread, parse_err_fn = no_mode)]
pub enum ReconcileMode {
    /// Ray's own autoscaler container, which also scales clusters without an annotation.
    #[default]
    Ray,
    /// `rayfit serve`, from outside the cluster.
    Central,
    /// Rayfit in the head pod, in place of Ray's autoscaler container.
    Sidecar,
}

impl ReconcileMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Ray, Self::Central, Self::Sidecar];

    /// The value of the annotation.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True where Rayfit scales the cluster, and not Ray's own autoscaler container.
    pub const fn is_ours(self) -> bool {
        !matches!(self, Self::Ray)
    }
}

fn no_mode(text: &str) -> Misread {
    Misread(format!(
        "\"{text}\" is not a reconcile mode: write ray, central or sidecar"
    ))
}
