//! Causes of the removal of a node.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::json_text::text_in_json;
use crate::snapshot::moment;

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
    thiserror::Error,
)]
#[serde(rename_all = "camelCase")]
pub enum RemovalCause {
    /// Its group has more nodes than its maximum.
    #[error("its group is above maxReplicas")]
    GroupMax,
    /// The cluster has more nodes than its maximum.
    #[error("the cluster is above its maximum")]
    ClusterMax,
    /// It has been idle for longer than the timeout, or was pending for longer without any demand
    /// that needs it.
    #[error("idle")]
    Idle,
    /// It is idle, and demand needs its room.
    #[error("it is idle, and demand needs its room")]
    GivesWay,
    /// The scheduler finds no room for it, and demand needs larger nodes than it could become.
    #[error("it finds no Kubernetes node, and demand needs larger ones than it could become")]
    Unschedulable,
    /// It was made larger than its template, and the scheduler finds no room for it.
    #[error("it was made larger than its template, and finds no Kubernetes node")]
    MadeTooLarge,
    /// Its raylet never joined the Ray cluster.
    #[error("its raylet never joined the Ray cluster")]
    NeverJoined,
    /// Its Kubernetes node is about to leave, or its pod is evicted.
    #[error("its Kubernetes node is about to leave")]
    NodeLeaves,
    /// It was for a placement group of which not all pods got a Kubernetes node.
    #[error(
        "Kubernetes has no room for all pods of its placement group, and others may need \
         its room"
    )]
    Scattered,
    /// Its scheduling gates were not removed, and fewer pods at once may be admitted.
    #[error("its scheduling gate was not removed, and fewer pods at once may be admitted")]
    NotAdmitted,
    /// Its group is no longer in the RayCluster.
    #[error("its group was removed")]
    GroupGone,
    /// It was asked to stop in an earlier round.
    #[error("it was asked to stop")]
    StopRequested,
    /// Its Ray node has stopped; only the pod is left.
    #[error("Ray has stopped in it")]
    Stopped,
}

/// The sign that a pod is about to leave against its autoscaler's will.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DepartureReason {
    /// Its Kubernetes node is being deleted.
    #[error("Kubernetes node {0} is being deleted")]
    NodeDeleted(String),
    /// Its Kubernetes node is cordoned.
    #[error("Kubernetes node {0} is cordoned")]
    NodeCordoned(String),
    /// Its Kubernetes node has a taint that says so.
    #[error("Kubernetes node {node} has the taint {key}")]
    NodeTainted {
        /// The name of the node.
        node: String,
        /// The key of the taint.
        key: String,
    },
    /// The pod has the condition `DisruptionTarget`, with that reason.
    #[error("the pod is evicted ({0})")]
    Disrupted(String),
}

/// A pod that is about to leave against its autoscaler's will.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Departure {
    /// The name of the pod.
    pub pod: String,
    /// The name of its group.
    pub group: String,
    /// The sign that it leaves.
    pub reason: DepartureReason,
    /// The time since which that is known, in seconds since 1970.
    pub since: f64,
    /// The time at which the pod is gone, as far as is known or assumed, in seconds since 1970.
    pub gone_at: f64,
    /// True if that time is known from the objects, and not assumed.
    pub is_known: bool,
    /// True if that time counts from now on, because neither the objects say nor anybody remembers since
    /// when the pod has been leaving: the next look from a workstation gives another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_from_now: bool,
}

impl Departure {
    /// The departure with its time, in words, for whoever remembers it from now on.
    pub(crate) fn with_time(&self) -> String {
        let Self {
            pod, group, reason, ..
        } = self;
        let sure = if self.is_known { "is" } else { "may be" };
        let at = moment(self.gone_at);
        format!("pod {pod} of group {group} {sure} gone at {at}: {reason}")
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time that counts from now on is another one in each look, and Events with it would never be equal.
        if !self.counts_from_now {
            return f.write_str(&self.with_time());
        }
        let Self {
            pod, group, reason, ..
        } = self;
        write!(
            f,
            "pod {pod} of group {group} may be gone at any time: {reason}"
        )
    }
}

text_in_json!(DepartureReason);
