//! What a Ray cluster is told about its scaling: the answer to its [`super::gcs`] state.
//!
//! `ray.rpc.autoscaler.AutoscalingState`, which `ray status` and the dashboard show.

use super::gcs::{ClusterResourceConstraint, GangResourceRequest, ResourceRequest};

/// What the scaler has asked for, what failed, and what it cannot do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AutoscalingState {
    /// Grows with every report, also over restarts of the scaler: milliseconds since 1970. The
    /// GCS drops a report whose version is lower than that of the one it has.
    pub version: i64,
    /// Pods that are asked for and not there yet.
    pub pending_requests: Vec<PendingRequest>,
    /// Pods that are there, without Ray in them yet.
    pub pending_instances: Vec<PendingInstance>,
    /// Pods that were asked for and will not come.
    pub failed_requests: Vec<FailedRequest>,
    /// Tasks and actors that no group could ever hold.
    pub infeasible_requests: Vec<ResourceRequest>,
    /// Placement groups that the groups could never hold.
    pub infeasible_gangs: Vec<GangResourceRequest>,
    /// What `request_resources()` asked for and cannot be had.
    pub infeasible_constraints: Vec<ClusterResourceConstraint>,
}

/// Pods of one group that are asked for and not there yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingRequest {
    /// The group.
    pub group: String,
    /// How many.
    pub count: i32,
    /// Since when, in seconds since 1970.
    pub since: i64,
}

/// A pod that is there, without Ray in it yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingInstance {
    /// The group.
    pub group: String,
    /// The pod.
    pub pod: String,
    /// Its address; empty until it has one.
    pub address: String,
    /// What it waits for, for people.
    pub details: String,
}

/// Pods of one group that were asked for and will not come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedRequest {
    /// The group.
    pub group: String,
    /// How many.
    pub count: i32,
    /// Why, for people.
    pub reason: String,
    /// When they were asked for, in seconds since 1970.
    pub started: i64,
    /// When they were given up, in seconds since 1970.
    pub failed: i64,
}
