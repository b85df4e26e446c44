//! The controller's memory of the resizes of a pod: those that failed, CPU that was spare, and
//! memory that was given because it was nearly full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::canonical::is_default;
use crate::seconds::is_recent;

/// Memory of the resizes of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResizeMemory {
    /// The number of resizes in a row that failed.
    pub failures: u32,
    /// The time at which the kubelet last said what the node can give, in seconds since 1970;
    /// absent once that is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_at: Option<f64>,
    /// The number of times in a row that the kubelet said that.
    #[serde(skip_serializing_if = "is_default")]
    pub suggestions: u32,
    /// The time at which asking Kubernetes for a resize last failed, in seconds since 1970. (A
    /// resize that was asked for and then failed is noted on the pod.)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<f64>,
    /// The CPU that the pod has needed while it had some to spare; absent while it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<SpareCpu>,
    /// Failures to make the pod smaller.
    #[serde(skip_serializing_if = "is_default")]
    pub shrink_failures: ShrinkFailures,
    /// The memory that the pod was given because its own was nearly full; absent an hour after it
    /// has given that back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub followed: Option<FollowedMemory>,
}

/// Memory that a pod was given because what it had was nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FollowedMemory {
    /// The memory that the pod had before, in bytes.
    pub from: i64,
    /// The time since which it has had memory to spare, in seconds since 1970.
    pub since: f64,
    /// The most that it has used since then, in bytes.
    pub most: i64,
    /// The number of times that it has needed more again after it had given memory back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: u32,
    /// True if it has given memory back since it grew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_back: bool,
}

/// Failures to make a pod smaller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShrinkFailures {
    /// The number of failures.
    pub count: u32,
    /// The time of the last one, in seconds since 1970.
    pub at: f64,
}

impl ShrinkFailures {
    /// Seconds after which failures are forgotten.
    const FORGOTTEN_AFTER_S: f64 = 3600.0;

    /// The number of failures, or 0 if the last one was long ago.
    pub fn lately(self, now: f64) -> u32 {
        if is_recent(self.at, Self::FORGOTTEN_AFTER_S, now) {
            self.count
        } else {
            0
        }
    }

    /// The failures with one more.
    #[must_use]
    pub fn and_one(self, now: f64) -> Self {
        Self {
            // Old failures are forgotten first, so that rare ones never add up.
            count: self.lately(now).saturating_add(1),
            at: now,
        }
    }
}

/// The CPU that a pod has needed while it had some to spare.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpareCpu {
    /// The time at which the present half of the hold began, in seconds since 1970.
    pub since: f64,
    /// The most that the pod has needed since then, in cores.
    pub most: f64,
    /// The most that it needed in the half before, in cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<f64>,
}

impl SpareCpu {
    /// The most that the pod has needed in both halves, in cores.
    pub fn peak(self) -> f64 {
        self.most.max(self.earlier.unwrap_or(0.0))
    }
}
