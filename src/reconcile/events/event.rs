//! Events on the RayCluster, and what holds for a while and is worth one: data.

use crate::plan::DemandKind;
use crate::reconcile::effects::effect::EffectTarget;
use crate::reconcile::events::driver_log::Message;

/// One Event.
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
    /// The pod it is about, if one; the Event itself is on the RayCluster.
    pub pod: Option<String>,
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What is to be told after a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Announcements {
    /// Events.
    pub news: Vec<ClusterEvent>,
    /// Lines for the drivers, which only a sidecar can write.
    pub messages: Vec<Message>,
}

/// Something that holds, and what is said of it when it begins to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrackedCondition {
    pub(crate) topic: ConditionKey,
    pub(crate) news: ClusterEvent,
    /// What drivers are told, if anything.
    pub(crate) message: Option<Message>,
}

/// What a state is about: the same as long as it is the same state, whatever its message says. So
/// there is nothing in it that changes with time, or from one try to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConditionKey {
    /// The cluster cannot be seen.
    NotObserved,
    /// It is seen again.
    Observed,
    /// A demand that cannot be met.
    Unmet { kind: DemandKind, demand: String },
    /// A fault in the cluster's objects.
    Problem { at: String, reason: String },
    /// A resize that the kubelet does not carry out.
    ResizeWaits { pod: String, reason: &'static str },
    /// A resize that failed at a moment, in seconds since 1970.
    ResizeFailed { pod: String, at: i64 },
    /// A call that failed.
    CallFailed {
        about: EffectTarget,
        effect: &'static str,
        reason: &'static str,
    },
}

impl ClusterEvent {
    pub(crate) fn normal(reason: &'static str, action: &'static str, message: String) -> Self {
        Self::new(EventType::Normal, reason, action, message)
    }

    pub(crate) fn warning(reason: &'static str, action: &'static str, message: String) -> Self {
        Self::new(EventType::Warning, reason, action, message)
    }

    pub(crate) fn on(mut self, pod: &str) -> Self {
        self.pod = Some(pod.to_owned());
        self
    }

    fn new(kind: EventType, reason: &'static str, action: &'static str, message: String) -> Self {
        Self {
            reason,
            kind,
            message,
            action,
            pod: None,
        }
    }
}
