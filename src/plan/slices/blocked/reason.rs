//! Reasons why a group cannot be served now.

use crate::snapshot::history::BlockCause;
use crate::snapshot::node_prospect::NodeAutoscaler;
use crate::snapshot::whole_moment;

/// The reason why pods of a group would not start now.
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
    /// A node autoscaler says that it can make no Kubernetes node for a pod.
    #[error("no Kubernetes node takes pod {pod}, and {} says that none comes{}", by.name(), in_words(message))]
    NoNodeComes {
        /// The name of the pod.
        pod: String,
        /// The node autoscaler that says so.
        by: NodeAutoscaler,
        /// Its own words.
        message: String,
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
    /// Pods end before Ray runs in them, and KubeRay makes others.
    #[error("pod {pod} ended before Ray ran in it, as the one before it did")]
    EndsAtStart {
        /// The name of the pod.
        pod: String,
    },
    /// A pod that has a Kubernetes node has not become a Ray node in time.
    #[error("pod {pod} has not become a Ray node in time: {stage}")]
    NotInTime {
        /// The name of the pod.
        pod: String,
        /// The stage that it has reached.
        stage: StartStage,
    },
    /// A pod that KubeRay was asked to delete is still there, and KubeRay leaves the group alone until it is gone.
    #[error(
        "KubeRay makes no pods of it while pod {pod} hangs in termination; if its Kubernetes node is lost, \
         delete it, or the pod with `kubectl delete pod --force`"
    )]
    Terminating {
        /// The name of the pod.
        pod: String,
    },
    /// KubeRay is refused to make its pods, for example by a quota, or has made none in time. The condition that says so is
    /// gone once the launches are taken back; KubeRay's Event stays for an hour.
    #[error(
        "KubeRay cannot make its pods: its Event FailedToCreateWorkerPod on the RayCluster says why, or \
         else its log"
    )]
    NotCreated,
    /// It could not be served a short while ago, and is not tried again before that time, in whole
    /// seconds since 1970.
    #[error("its pods could not start{}; it is tried again at {}", because(*.cause), whole_moment(*.until))]
    Lately {
        /// The cause, if that is remembered.
        cause: Option<BlockCause>,
        /// The time.
        until: i64,
    },
}

/// The stage of a pod with a Kubernetes node on its way to a Ray node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum StartStage {
    /// The volumes or the sandbox of its containers are not ready.
    #[error(
        "its volumes or its sandbox are not ready, and its Events FailedMount or \
         FailedCreatePodSandBox say why"
    )]
    Sandbox,
    /// An init container has not ended, with its name.
    #[error("its init container {0:?} has not ended")]
    InitContainer(String),
    /// Its containers have not been started.
    #[error("its containers have not been started, for example because an image is still pulled")]
    Containers,
    /// Its containers run, and its raylet is not ready.
    #[error("its raylet never joined the Ray cluster")]
    Raylet,
}

impl BlockReason {
    /// The reason without the names of pods and gates, without the words of others and without times,
    /// which may change while it holds.
    #[must_use]
    pub fn identity(&self) -> Self {
        // Nobody wants to be told again because another pod of the group shows the same trouble.
        let mut reason = self.clone();
        match &mut reason {
            Self::SchedulingGate { pod, gate: text }
            | Self::NoNodeComes {
                pod, message: text, ..
            }
            | Self::NotInTime {
                pod,
                stage: StartStage::InitContainer(text),
            } => {
                pod.clear();
                text.clear();
            }
            Self::ScaleGate(text)
            | Self::Unschedulable { pod: text }
            | Self::NoImage { pod: text }
            | Self::NoContainer { pod: text }
            | Self::Crashes { pod: text }
            | Self::EndsAtStart { pod: text }
            | Self::Terminating { pod: text }
            | Self::NotInTime { pod: text, .. } => text.clear(),
            Self::NotCreated => {}
            Self::Lately { until, .. } => *until = 0,
        }
        reason
    }

    /// The cause that is remembered of the reason.
    pub fn cause(&self) -> Option<BlockCause> {
        match self {
            Self::ScaleGate(_) => None,
            Self::SchedulingGate { .. } => Some(BlockCause::Gated),
            Self::Unschedulable { .. } | Self::NoNodeComes { .. } => {
                Some(BlockCause::Unschedulable)
            }
            Self::NoImage { .. } => Some(BlockCause::NoImage),
            Self::NoContainer { .. } => Some(BlockCause::NoContainer),
            Self::Crashes { .. } => Some(BlockCause::Crashes),
            Self::EndsAtStart { .. } => Some(BlockCause::EndsAtStart),
            Self::NotInTime { .. } => Some(BlockCause::NotInTime),
            Self::Terminating { .. } | Self::NotCreated => Some(BlockCause::NotCreated),
            Self::Lately { cause, .. } => *cause,
        }
    }

    /// The pod that shows it, if one does.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::SchedulingGate { pod, .. }
            | Self::Unschedulable { pod }
            | Self::NoNodeComes { pod, .. }
            | Self::NoImage { pod }
            | Self::NoContainer { pod }
            | Self::Crashes { pod }
            | Self::EndsAtStart { pod }
            | Self::NotInTime { pod, .. }
            | Self::Terminating { pod } => Some(pod),
            Self::ScaleGate(_) | Self::NotCreated | Self::Lately { .. } => None,
        }
    }
}

/// The words of a node autoscaler, as the end of a sentence. They are quoted and escaped: whoever may create Events in
/// the namespace chose them.
fn in_words(message: &str) -> String {
    if message.is_empty() {
        return String::new();
    }
    format!(": {message:?}")
}

/// The cause why pods could not start, as the rest of a sentence.
fn because(cause: Option<BlockCause>) -> &'static str {
    match cause {
        None => "",
        Some(BlockCause::Gated) => ", because scheduling gates were not removed",
        Some(BlockCause::Unschedulable) => ", because no Kubernetes node took them",
        Some(BlockCause::NoImage) => ", because an image could not be pulled",
        Some(BlockCause::NoContainer) => ", because a container could not be made",
        Some(BlockCause::Crashes) => ", because a container ended again and again",
        Some(BlockCause::EndsAtStart) => ", because they ended before Ray ran in them",
        Some(BlockCause::NotInTime) => ", because they did not become Ray nodes in time",
        Some(BlockCause::NotCreated) => {
            ", because KubeRay could not make them (its Event \
             FailedToCreateWorkerPod on the RayCluster says why)"
        }
    }
}
