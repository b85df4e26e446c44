//! Why a group cannot be served now.

use crate::snapshot::moment;

/// Why pods of a group would not start now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum BlockReason {
    /// A controller says so in the group's `scaleStrategy.scaleGate`, with the name of the gate.
    #[error("its scaleGate {0:?} says that it cannot grow now")]
    ScaleGate(String),
    /// A pod has a scheduling gate.
    #[error("pod {pod} waits for its scheduling gate {gate:?} to be removed")]
    SchedulingGate {
        /// The name of the pod.
        pod: String,
        /// The name of the gate.
        gate: String,
    },
    /// No Kubernetes node has room for a pod.
    #[error("no Kubernetes node takes pod {pod}")]
    Unschedulable {
        /// The name of the pod.
        pod: String,
    },
    /// An image of a pod cannot be pulled.
    #[error("an image of pod {pod} cannot be pulled")]
    NoImage {
        /// The name of the pod.
        pod: String,
    },
    /// A container of a pod cannot be made.
    #[error("a container of pod {pod} cannot be made")]
    NoContainer {
        /// The name of the pod.
        pod: String,
    },
    /// A container of a pod ends again and again.
    #[error("a container of pod {pod} ends again and again")]
    Crashes {
        /// The name of the pod.
        pod: String,
    },
    /// KubeRay is refused to make its pods, for example by a quota.
    #[error(
        "KubeRay cannot make its pods: the condition ReplicaFailure of the RayCluster says why"
    )]
    NotCreated,
    /// It could not be served a short while ago, and is not tried again before that time, in whole
    /// seconds since 1970.
    #[error("its pods could not start; it is tried again at {}", time(*.until))]
    Lately {
        /// The time.
        until: i64,
    },
}

impl BlockReason {
    /// The reason without the names of pods and gates and without times, which may change while it
    /// holds.
    #[must_use]
    pub fn identity(&self) -> Self {
        let pod = String::new();
        match self {
            Self::ScaleGate(_) => Self::ScaleGate(String::new()),
            Self::SchedulingGate { .. } => Self::SchedulingGate {
                pod,
                gate: String::new(),
            },
            Self::Unschedulable { .. } => Self::Unschedulable { pod },
            Self::NoImage { .. } => Self::NoImage { pod },
            Self::NoContainer { .. } => Self::NoContainer { pod },
            Self::Crashes { .. } => Self::Crashes { pod },
            Self::NotCreated => Self::NotCreated,
            Self::Lately { .. } => Self::Lately { until: 0 },
        }
    }

    /// The pod that shows it, if one does.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::SchedulingGate { pod, .. }
            | Self::Unschedulable { pod }
            | Self::NoImage { pod }
            | Self::NoContainer { pod }
            | Self::Crashes { pod } => Some(pod),
            Self::ScaleGate(_) | Self::NotCreated | Self::Lately { .. } => None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "whole seconds since 1970")]
fn time(seconds: i64) -> String {
    moment(seconds as f64)
}
