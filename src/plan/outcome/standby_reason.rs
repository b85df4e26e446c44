//! Reasons for standby: why nodes are kept ready though no demand needs them.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::json_text::text_in_json;

/// The reason why nodes are kept ready though no demand needs them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StandbyReason {
    /// A RayPolicy asks for headroom.
    Headroom,
    /// The work of a Ray node that is about to leave with its Kubernetes node.
    Replaces {
        /// The name of its pod.
        pod: String,
    },
    /// The hours of a schedule.
    Schedule {
        /// The name of the schedule.
        name: String,
        /// The end of its hours.
        until: Timestamp,
    },
}

/// New nodes that are launched to be ready, and not for demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandbyLaunch {
    /// The number of these nodes.
    pub nodes: u64,
    /// The reason for them.
    pub reason: StandbyReason,
}

impl fmt::Display for StandbyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headroom => f.write_str("headroom"),
            Self::Replaces { pod } => write!(f, "the work of {pod}, which is about to leave"),
            Self::Schedule { name, until } if *until == Timestamp::MAX => {
                write!(f, "schedule {name}")
            }
            Self::Schedule { name, until } => write!(f, "schedule {name} until {until}"),
        }
    }
}

impl fmt::Display for StandbyLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.nodes, self.reason)
    }
}

text_in_json!(StandbyReason);

/// Gaps between bursts of work that a group has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GapsSeen {
    /// The number of gaps seen.
    pub seen: u64,
    /// The number of them that ended in the time for which a pod is kept.
    pub ended: u64,
}
