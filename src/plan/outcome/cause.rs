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
    /// It is idle, and demand needs its room.
    GivesWay,
    /// The scheduler finds no room for it, and demand needs larger nodes than it could become.
    Unschedulable,
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
            Self::GivesWay => "it is idle, and demand needs its room",
            Self::Unschedulable => {
                "it finds no Kubernetes node, and demand needs larger ones than it could become"
            }
            Self::GroupGone => "its group was removed",
            Self::StopRequested => "it was asked to stop",
            Self::Stopped => "Ray has stopped in it",
        }
    }
}
