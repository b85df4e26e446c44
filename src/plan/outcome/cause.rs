//! Why a node is to be removed.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a node is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RemovalCause {
    /// Its group has more nodes than its maximum.
    GroupMax,
    /// The cluster has more nodes than its maximum.
    ClusterMax,
    /// It has been idle for longer than the timeout, or was pending for longer without any demand
    /// that needs it.
    Idle,
    /// It was kept ready, and other demand needs its room.
    GivesWay,
    /// Its group is no longer in the RayCluster.
    GroupGone,
    /// It was asked to stop in an earlier round.
    StopRequested,
    /// Its Ray node has stopped; only the pod is left.
    Stopped,
}

impl RemovalCause {
    /// The cause in words, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::GroupMax => "its group is above maxReplicas",
            Self::ClusterMax => "the cluster is above its maximum",
            Self::Idle => "idle",
            Self::GivesWay => "it was only kept ready, and demand needs its room",
            Self::GroupGone => "its group was removed",
            Self::StopRequested => "it was asked to stop",
            Self::Stopped => "Ray has stopped in it",
        }
    }
}
