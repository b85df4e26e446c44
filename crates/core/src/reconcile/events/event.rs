//! Events on the RayCluster, and the conditions that are worth one, as data.

use crate::plan::{DemandKind, ProblemPlace, ProblemReason};
use crate::reconcile::effects::effect::EffectTarget;
use crate::reconcile::events::driver_log::Message;

/// One Event on the RayCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEvent {
    /// `reason`: one of a fixed set of names.
    pub reason: &'static str,
    /// `type`
    pub kind: EventType,
    /// `message` (`note`), at most 1024 bytes.
    pub message: String,
    /// `action`, such as `Scaling`.
    pub action: &'static str,
    /// The pod that the Event is about, if it is about one; the Event itself is on the RayCluster.
    pub pod: Option<String>,
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// The cluster works as it should.
    Normal,
    /// Users should look at the cluster.
    Warning,
}

/// The announcements after a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Announcements {
    /// Events for Kubernetes' users.
    pub events: Vec<ClusterEvent>,
    /// Messages for drivers, which only a sidecar can write into Ray's log.
    pub messages: Vec<Message>,
}

/// A condition that holds, and what is announced when it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrackedCondition {
    pub(crate) topic: ConditionKey,
    pub(crate) event: ClusterEvent,
    /// The message for drivers, if there is one.
    pub(crate) message: Option<Message>,
}

/// The identity of a condition: the same as long as the condition is the same, whatever its message
/// says. So it contains nothing that changes with time or from one attempt to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConditionKey {
    /// The cluster cannot be observed.
    NotObserved,
    /// The cluster is observed again.
    Observed,
    /// A demand that cannot be met.
    Unmet { kind: DemandKind, demand: String },
    /// A problem of the cluster's objects.
    Problem {
        at: ProblemPlace,
        reason: ProblemReason,
    },
    /// A node above a maximum that still has work.
    Excess { pod: String },
    /// Nobody uses the cluster any more.
    Ends,
    /// A pod that is about to leave with its Kubernetes node.
    Departs { pod: String },
    /// A resize that the kubelet does not carry out.
    ResizeWaits { pod: String, reason: &'static str },
    /// A resize that failed, with the time of the failure in seconds since 1970.
    ResizeFailed { pod: String, at: i64 },
    /// An effect that failed.
    CallFailed {
        about: EffectTarget,
        effect: &'static str,
        reason: &'static str,
    },
}

impl TrackedCondition {
    /// A condition of which drivers are told nothing.
    pub(crate) fn new(topic: ConditionKey, event: ClusterEvent) -> Self {
        Self {
            topic,
            event,
            message: None,
        }
    }
}

impl ClusterEvent {
    pub(crate) fn normal(reason: &'static str, action: &'static str, message: String) -> Self {
        Self {
            reason,
            kind: EventType::Normal,
            message,
            action,
            pod: None,
        }
    }

    /// An Event of type `Warning`.
    pub fn warning(reason: &'static str, action: &'static str, message: String) -> Self {
        Self {
            kind: EventType::Warning,
            ..Self::normal(reason, action, message)
        }
    }

    pub(crate) fn on(mut self, pod: &str) -> Self {
        self.pod = Some(pod.to_owned());
        self
    }
}
