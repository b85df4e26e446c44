//! A condition of a pod, and which conditions are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::snapshot::canonical::nullable;
use crate::snapshot::moment::seconds;

/// The most bytes of a condition's message that are kept. A kubelet's messages are below 200.
const MESSAGE: usize = 1024;

/// The conditions that are kept; all others are dropped.
const CONDITIONS: [&str; 6] = [
    SCHEDULED,
    "PodReadyToStartContainers",
    "DisruptionTarget",
    "PodResizePending",
    "PodResizeInProgress",
    READY,
];

/// The condition that says whether a pod has a Kubernetes node.
const SCHEDULED: &str = "PodScheduled";

/// The condition that says whether a pod is ready.
const READY: &str = "Ready";

/// A condition of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// The type of the condition.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    /// The status of the condition: `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// The reason, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason in words, for people. Of a very long message only the beginning is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that the condition is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The time since which the condition has had its status, in RFC 3339; kept only of
    /// `PodScheduled` and `Ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

impl PodCondition {
    /// The time since which it has had its status, in seconds since 1970, if that is kept.
    pub fn since(&self) -> Option<f64> {
        seconds(self.last_transition_time.as_deref()?)
    }

    /// True if the condition holds.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// Reads the conditions that are kept.
pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PodCondition>, D::Error> {
    let mut all: Vec<PodCondition> = nullable(deserializer)?;
    all.retain(|condition| CONDITIONS.contains(&condition.kind.as_str()));
    for condition in &mut all {
        if !matches!(condition.kind.as_str(), SCHEDULED | READY) {
            condition.last_transition_time = None;
        }
        if let Some(message) = &mut condition.message {
            message.truncate(message.floor_char_boundary(MESSAGE));
        }
    }
    Ok(all)
}
