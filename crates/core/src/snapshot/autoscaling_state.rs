//! The autoscaling state: what a Ray cluster is told about its scaling, in answer to its
//! [`super::gcs`] state.
//!
//! This is `ray.rpc.autoscaler.AutoscalingState`, which `ray status` and the dashboard show.

use std::collections::BTreeMap;

use super::gcs::{ClusterResourceConstraint, GangResourceRequest, ResourceRequest};

/// The scaler's report: launches under way, failed launches, and demand that cannot be met.
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
    /// Constraints of `request_resources()` that no scaling can meet.
    pub infeasible_constraints: Vec<ClusterResourceConstraint>,
}

/// Pods of one group that KubeRay was asked for and that do not exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingRequest {
    /// The name of the group.
    pub group: String,
    /// The number of pods.
    pub count: i32,
    /// The time of the request, in seconds since 1970.
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
    /// The reason why the pod waits, in words for people.
    pub details: String,
}

/// Pods of one group that KubeRay was asked for and that will not come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedRequest {
    /// The name of the group.
    pub group: String,
    /// The number of pods.
    pub count: i32,
    /// The reason why they will not come, in words for people.
    pub reason: String,
    /// The time of the request, in seconds since 1970.
    pub started: i64,
    /// The time at which they were given up, in seconds since 1970.
    pub failed: i64,
}

/// The pods that a scaler has asked for, by group, as it reported them last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchCounts {
    /// Pods without Ray in them yet, whether or not they exist.
    pub pending: BTreeMap<String, u64>,
    /// Pods that will not come.
    pub failed: BTreeMap<String, u64>,
}
