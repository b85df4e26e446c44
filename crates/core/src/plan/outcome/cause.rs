//! Causes of the removal of a node.

use schemars::JsonSchema;
use serde::Serialize;

/// The cause of the removal of a node.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    JsonSchema,
    derive_more::Display,
)]
#[serde(rename_all = "camelCase")]
pub enum RemovalCause {
    /// Its group has more nodes than its maximum.
    #[display("its group is above maxReplicas")]
    GroupMax,
    /// The cluster has more nodes than its maximum.
    #[display("the cluster is above its maximum")]
    ClusterMax,
    /// It has been idle for longer than the timeout, or was pending for longer without any demand
    /// that needs it.
    #[display("idle")]
    Idle,
    /// It is idle, and demand needs its room.
    #[display("it is idle, and demand needs its room")]
    GivesWay,
    /// The scheduler finds no room for it, and demand needs larger nodes than it could become.
    #[display("it finds no Kubernetes node, and demand needs larger ones than it could become")]
    Unschedulable,
    /// It was made larger than its template, and the scheduler finds no room for it.
    #[display("it was made larger than its template, and finds no Kubernetes node")]
    MadeTooLarge,
    /// Its raylet never joined the Ray cluster.
    #[display("its raylet never joined the Ray cluster")]
    NeverJoined,
    /// Its Kubernetes node is about to leave, or its pod is evicted.
    #[display("its Kubernetes node is about to leave")]
    NodeLeaves,
    /// It was for a placement group of which not all pods got a Kubernetes node.
    #[display(
        "Kubernetes has no room for all pods of its placement group, and others may need \
         its room"
    )]
    Scattered,
    /// Its scheduling gates were not removed, and fewer pods at once may be admitted.
    #[display("its scheduling gate was not removed, and fewer pods at once may be admitted")]
    NotAdmitted,
    /// Its group is no longer in the RayCluster.
    #[display("its group was removed")]
    GroupGone,
    /// It was asked to stop in an earlier round.
    #[display("it was asked to stop")]
    StopRequested,
    /// Its Ray node has stopped; only the pod is left.
    #[display("Ray has stopped in it")]
    Stopped,
}
