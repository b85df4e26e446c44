//! The autoscaling state: what a Ray cluster is told about its scaling, in answer to its
//! [`super::gcs`] state.
//!
//! This is `ray.rpc.autoscaler.AutoscalingState`, which `ray status` and the dashboard show.

use super::gcs::{ClusterResourceConstraint, GangResourceRequest, ResourceRequest};

/// What the scaler has asked for, which launches failed, and which demand it cannot meet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AutoscalingState {
    /// The version of the report, in milliseconds since 1970. It grows with every report, also when
    /// the scaler restarts. The GCS drops a report whose version is lower than that of the report
    /// it has.
    pub version: i64,
    /// Pods that KubeRay was asked for and that do not exist yet.
    pub pending_requests: Vec<PendingRequest>,
    /// Pods that exist, and in which Ray does not run yet.
    pub pending_instances: Vec<PendingInstance>,
    /// Pods that KubeRay was asked for and that will not come.
    pub failed_requests: Vec<FailedRequest>,
    /// Tasks and actors that no node of any group could ever hold.
    pub infeasible_requests: Vec<ResourceRequest>,
    /// Placement groups that the nodes of all groups could never hold.
    pub infeasible_gangs: Vec<GangResourceRequest>,
    /// What `request_resources()` asked for and no scaling can give.
    pub infeasible_constraints: Vec<ClusterResourceConstraint>,
}

/// Pods of one group that KubeRay was asked for and that do not exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingRequest {
    /// The name of the group.
    pub group: String,
    /// How many pods there are.
    pub count: i32,
    /// When they were asked for, in seconds since 1970.
    pub since: i64,
}

/// A pod that exists, and in which Ray does not run yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingInstance {
    /// The name of the group.
    pub group: String,
    /// The name of the pod.
    pub pod: String,
    /// The address of the pod; empty until it has one.
    pub address: String,
    /// What the pod waits for, in words for people.
    pub details: String,
}

/// Pods of one group that KubeRay was asked for and that will not come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedRequest {
    /// The name of the group.
    pub group: String,
    /// How many pods there are.
    pub count: i32,
    /// Why they will not come, in words for people.
    pub reason: String,
    /// When they were asked for, in seconds since 1970.
    pub started: i64,
    /// When they were given up, in seconds since 1970.
    pub failed: i64,
}
