//! Reasons for standby: why nodes are kept ready though no demand needs them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::text::text_in_json;

/// The reason why nodes are kept ready though no demand needs them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, derive_more::Display)]
pub enum StandbyReason {
    /// A RayPolicy asks for headroom.
    #[display("headroom")]
    Headroom,
    /// The work of a Ray node that is about to leave with its Kubernetes node.
    #[display("the work of {pod}, which is about to leave")]
    Replaces {
        /// The name of its pod.
        pod: String,
    },
    /// The hours of a schedule.
    #[display(
        "schedule {name}{}",
        if *until == Timestamp::MAX { String::new() } else { format!(" until {until}") }
    )]
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

text_in_json!(StandbyReason);
