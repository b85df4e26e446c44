//! Reasons why a group cannot be served now.

use crate::snapshot::history::BlockCause;
use crate::snapshot::node_prospect::NodeAutoscaler;
use crate::snapshot::whole_moment;

/// The reason why pods of a group would not start now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
pub enum BlockReason {
    /// A controller says so in the group's `scaleStrategy.scaleGate`, with the name of the gate.
    #[display("its scaleGate {_0:?} says that it cannot grow now")]
    ScaleGate(String),
    /// A pod does not start.
    #[display("{}", trouble.describe(pod))]
    Pod {
        /// The name of the pod.
        pod: String,
        /// The trouble that it has.
        trouble: PodTrouble,
    },
    /// KubeRay is refused to make its pods, for example by a quota, or has made none in time. The condition that says so is
    /// gone once the launches are taken back; KubeRay's Event stays for an hour.
    #[display(
        "KubeRay cannot make its pods: its Event FailedToCreateWorkerPod on the RayCluster says why, or \
         else its log"
    )]
    NotCreated,
    /// It could not be served a short while ago, and is not tried again before that time, in whole
    /// seconds since 1970.
    #[display("its pods could not start{}; it is tried again at {}", because(*cause), whole_moment(*until))]
    Lately {
        /// The cause, if that is remembered.
        cause: Option<BlockCause>,
        /// The time.
        until: i64,
    },
}

/// The trouble of a pod that does not start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodTrouble {
    /// It has a scheduling gate, by its name.
    Gated(String),
    /// No Kubernetes node has room for it.
    Unschedulable,
    /// A node autoscaler says, in its own words, that it can make no Kubernetes node for it.
    NoNodeComes(NodeAutoscaler, String),
    /// An image of it cannot be pulled.
    NoImage,
    /// A container of it cannot be made.
    NoContainer,
    /// A container of it ends again and again.
    Crashes,
    /// It ended before Ray ran in it, and KubeRay makes others that do the same.
    EndsAtStart,
    /// It has a Kubernetes node and has not become a Ray node in time.
    NotInTime(StartStage),
    /// KubeRay was asked to delete it, and leaves the group alone until it is gone.
    Terminating,
}

impl PodTrouble {
    /// The trouble of a named pod, in words.
    fn describe(&self, pod: &str) -> String {
        match self {
            Self::Gated(gate) => {
                format!("pod {pod} waits for its scheduling gate {gate:?} to be removed")
            }
            Self::Unschedulable => format!("no Kubernetes node takes pod {pod}"),
            Self::NoNodeComes(by, message) => {
                // Quoted and escaped: whoever may create Events in the namespace chose these words.
                let words = Some(format!(": {message:?}")).filter(|_| !message.is_empty());
                format!(
                    "no Kubernetes node takes pod {pod}, and {} says that none comes{}",
                    by.name(),
                    words.unwrap_or_default()
                )
            }
            Self::NoImage => format!("an image of pod {pod} cannot be pulled"),
            Self::NoContainer => format!("a container of pod {pod} cannot be made"),
            Self::Crashes => format!("a container of pod {pod} ends again and again"),
            Self::EndsAtStart => {
                format!("pod {pod} ended before Ray ran in it, as the one before it did")
            }
            Self::NotInTime(stage) => {
                format!("pod {pod} has not become a Ray node in time: {stage}")
            }
            Self::Terminating => format!(
                "KubeRay makes no pods of it while pod {pod} hangs in termination; if its Kubernetes node is \
                 lost, delete it, or the pod with `kubectl delete pod --force`"
            ),
        }
    }
}

/// The stage of a pod with a Kubernetes node on its way to a Ray node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
pub enum StartStage {
    /// The volumes or the sandbox of its containers are not ready.
    #[display(
        "its volumes or its sandbox are not ready, and its Events FailedMount or \
         FailedCreatePodSandBox say why"
    )]
    Sandbox,
    /// An init container has not ended, with its name.
    #[display("its init container {_0:?} has not ended")]
    InitContainer(String),
    /// Its containers have not been started.
    #[display("its containers have not been started, for example because an image is still pulled")]
    Containers,
    /// Its containers run, and its raylet is not ready.
    #[display("its raylet never joined the Ray cluster")]
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
            Self::ScaleGate(gate) => gate.clear(),
            Self::Pod { pod, trouble } => {
                pod.clear();
                if let PodTrouble::Gated(text)
                | PodTrouble::NoNodeComes(_, text)
                | PodTrouble::NotInTime(StartStage::InitContainer(text)) = trouble
                {
                    text.clear();
                }
            }
            Self::NotCreated => {}
            Self::Lately { until, .. } => *until = 0,
        }
        reason
    }

    /// The cause that is remembered of the reason.
    pub fn cause(&self) -> Option<BlockCause> {
        match self {
            Self::ScaleGate(_) => None,
            Self::Pod { trouble, .. } => Some(match trouble {
                PodTrouble::Gated(_) => BlockCause::Gated,
                PodTrouble::Unschedulable | PodTrouble::NoNodeComes(..) => {
                    BlockCause::Unschedulable
                }
                PodTrouble::NoImage => BlockCause::NoImage,
                PodTrouble::NoContainer => BlockCause::NoContainer,
                PodTrouble::Crashes => BlockCause::Crashes,
                PodTrouble::EndsAtStart => BlockCause::EndsAtStart,
                PodTrouble::NotInTime(_) => BlockCause::NotInTime,
                PodTrouble::Terminating => BlockCause::NotCreated,
            }),
            Self::NotCreated => Some(BlockCause::NotCreated),
            Self::Lately { cause, .. } => *cause,
        }
    }

    /// The pod that shows it, if one does.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::Pod { pod, .. } => Some(pod),
            Self::ScaleGate(_) | Self::NotCreated | Self::Lately { .. } => None,
        }
    }
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
