//! Whether a cluster is ours to scale, from its objects alone.

use serde_json::Value;

use crate::ray::ReconcileMode;

/// As what this process scales.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// From outside, many clusters.
    Central,
    /// In the head pod, this cluster only.
    Sidecar {
        /// The uid of the head pod that it runs in.
        head_uid: String,
    },
}

/// Whether a cluster is ours to scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is, if it is our [`turn`](super::tenure).
    Ours,
    /// It is not.
    Leave(Reason),
}

/// Why a cluster is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The annotation names another scaler.
    #[error("its mode is {0}")]
    Mode(ReconcileMode),
    /// `enableInTreeAutoscaling` is not true.
    #[error(
        "autoscaling is off: set spec.enableInTreeAutoscaling to true, or KubeRay deletes workers \
         at random while Rayfit scales"
    )]
    AutoscalingOff,
    /// It is being deleted.
    #[error("it is being deleted")]
    Deleting,
    /// `spec.suspend`
    #[error("it is suspended")]
    Suspended,
    /// `spec.managedBy`
    #[error("it is managed by {0}")]
    ManagedBy(String),
    /// Kueue decides on its size.
    #[error(
        "Kueue's queue {0} decides on its size: annotate it with kueue.x-k8s.io/elastic-job: \
         \"true\" if Kueue is set up for that, or take the label away"
    )]
    Kueue(String),
    /// Ray's own autoscaler runs in the head pod.
    #[error(
        "another autoscaler ({image}) runs in head pod {pod}: Rayfit begins once the head pod is \
         replaced by one with Rayfit's image in spec.autoscalerOptions.image"
    )]
    OtherScaler {
        /// The head pod.
        pod: String,
        /// The image of its autoscaler container.
        image: String,
    },
    /// This sidecar's pod is not the head any more.
    #[error("this pod is not the cluster's head any more")]
    NotTheHead,
}

/// The annotation by which a sidecar of ours marks its own pod, with its version as value: a sign
/// that does not depend on the name of an image.
pub const SIGN_ANNOTATION: &str = "rayfit.dev/autoscaler";

/// Whether `cluster` is for `role` to scale. `pods` are its pods; `is_ours` tells Rayfit's images
/// from others.
pub fn standing(
    cluster: &Value,
    pods: &[&Value],
    role: &Role,
    is_ours: impl Fn(&str) -> bool,
) -> Standing {
    let _ = (cluster, pods, role, is_ours);
    Standing::Leave(Reason::AutoscalingOff)
}
