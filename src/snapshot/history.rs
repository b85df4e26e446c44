//! What the controller remembers of earlier rounds. Everything in it is optional: after a
//! restart decisions are made from the objects alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct History {
    /// Launches that have no pod yet and pods known before, oldest first.
    pub instances: Vec<Instance>,
    /// When a group's pods last failed to appear in time, in seconds since 1970.
    pub unavailable: BTreeMap<String, f64>,
    /// Per group, since when so many of its pending pods have been of no use, oldest first, in
    /// seconds since 1970. Only used with a pending idle timeout.
    pub unneeded_since: BTreeMap<String, Vec<f64>>,
    /// What was learnt about resizing single pods.
    pub resizes: BTreeMap<String, ResizeMemory>,
    /// Groups whose new pods did not get to the size that they were made for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stunted: BTreeMap<String, Stunted>,
}

/// That new pods of a group did not get to the size that they were made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Stunted {
    /// How often in a row.
    pub failures: u32,
    /// When last, in seconds since 1970.
    pub at: f64,
}

/// A launch or a known pod.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instance {
    /// Its group.
    pub group: String,
    /// Its pod, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// How far it is.
    pub status: InstanceStatus,
    /// When it got there, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// How many such launches there are; a pod is one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// How far an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum InstanceStatus {
    /// Decided, not yet asked of KubeRay.
    Queued,
    /// Asked of KubeRay; no pod seen.
    Requested,
    /// Its pod was seen.
    Allocated,
    /// Its Ray node was asked to stop.
    StopRequested,
}

/// What was learnt about resizing a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResizeMemory {
    /// How many resizes in a row failed.
    pub failures: u32,
    /// When the node last told how much it could give, in seconds since 1970; none once that is
    /// forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_at: Option<f64>,
    /// How often in a row it told that.
    #[serde(skip_serializing_if = "is_zero")]
    pub suggestions: u32,
    /// When a resize last could not be asked for, in seconds since 1970. (That one was asked for
    /// and failed stands on the pod.)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<f64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
