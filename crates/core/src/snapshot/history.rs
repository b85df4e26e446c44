//! The controller's memory of earlier rounds. Everything in it is optional: after a restart,
//! decisions are made from the objects alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::seconds::is_recent;
pub use crate::snapshot::resize_memory::{FollowedMemory, ResizeMemory, ShrinkFailures, SpareCpu};

/// The controller's memory of earlier rounds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct History {
    /// Launches that have no pod yet, and pods that were known before, the oldest first.
    pub instances: Vec<Instance>,
    /// By group, the time at which its pods last failed to appear, in seconds since 1970.
    pub unavailable: BTreeMap<String, f64>,
    /// By group, since when its pending pods have been of no use, in seconds since 1970, with one
    /// time for each such pod and the oldest first. It is only used with a timeout for idle pending
    /// pods.
    pub unneeded_since: BTreeMap<String, Vec<f64>>,
    /// Memory of the resizes of single pods, by the name of the pod.
    pub resizes: BTreeMap<String, ResizeMemory>,
    /// Groups in growth back-off: their new pods did not grow to the size that they were launched
    /// for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub growth_backoffs: BTreeMap<String, GrowthBackoff>,
    /// By group, how many of its pods ran when it last had work for all of them, or more since.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub at_work: BTreeMap<String, u64>,
    /// By group whose pods can be resized, when it had work, the oldest first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bursts: BTreeMap<String, Vec<BurstMemory>>,
    /// By group, the most nodes to launch at once, since more were refused.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub launch_limits: BTreeMap<String, u64>,
    /// Groups that could not be served.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub blocked: BTreeMap<String, BlockMemory>,
    /// Pods that ended before Ray ran in them, by the name of their group.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub early_ends: BTreeMap<String, EarlyEnds>,
    /// Nodes above a maximum that were asked to leave, by the name of the pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub excess: BTreeMap<String, ExcessMemory>,
    /// Placement groups whose pods did not all get a Kubernetes node, by their titles.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gangs: BTreeMap<String, GangMemory>,
    /// The last jump that was not admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump: Option<JumpMemory>,
    /// The time since which nobody has used the cluster, where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<UnusedMemory>,
    /// The time since which pods have been about to leave with their Kubernetes node, or by an
    /// eviction, by the name of the pod, in seconds since 1970.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub departing: BTreeMap<String, f64>,
    /// Departures announced to the Ray nodes of such pods, by the name of the pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, ToldDeparture>,
    /// Idle pods that are, or were, needed for headroom, by the name of the pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub standby: BTreeMap<String, StandbyMemory>,
    /// Room that there has seemed to be for pods that the scheduler cannot place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rooms: RoomMemory,
}

/// By group with pods that the scheduler cannot place: since when a Kubernetes node has seemed to have
/// room for one of them, by its name, in seconds since 1970.
pub type RoomMemory = BTreeMap<String, BTreeMap<String, f64>>;

/// A time in which a group had work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BurstMemory {
    /// The beginning, in seconds since 1970.
    pub at: f64,
    /// The end, in seconds since 1970; absent while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// The most pods that it needed.
    pub pods: u64,
}

/// Memory of a group that could not be served.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BlockMemory {
    /// The time at which the objects last said so, in seconds since 1970.
    pub seen_at: f64,
    /// The number of times in a row that this began.
    pub times: u32,
    /// Pods that showed it, by name; empty where something else did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// True once it is over for sure: a pod that showed it has started, or the gate is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
    /// True if a scale gate said so, which is removed once the group can be served.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_gate: bool,
    /// The cause; absent where a scale gate said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<BlockCause>,
}

/// The cause for which a group could not be served.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
pub enum BlockCause {
    /// Pods had scheduling gates.
    Gated,
    /// No Kubernetes node had room for pods.
    Unschedulable,
    /// An image could not be pulled.
    NoImage,
    /// A container could not be made.
    NoContainer,
    /// A container ended again and again.
    Crashes,
    /// Pods ended before Ray ran in them.
    EndsAtStart,
    /// Pods did not become Ray nodes in time.
    NotInTime,
    /// KubeRay was refused to make pods.
    NotCreated,
}

/// Pods of a group that ended before Ray ran in them, since Ray last began to run in one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EarlyEnds {
    /// The time at which that was last seen, in seconds since 1970.
    pub at: f64,
    /// The last of these pods, by name.
    pub pods: Vec<String>,
}

impl EarlyEnds {
    /// Seconds after which an early end is forgotten.
    const FORGOTTEN_AFTER_S: f64 = 600.0;

    /// True if they were seen lately.
    pub fn counts(&self, now: f64) -> bool {
        is_recent(self.at, Self::FORGOTTEN_AFTER_S, now)
    }
}

/// The time since which nobody has used a cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UnusedMemory {
    /// Since then, in seconds since 1970; absent while somebody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// The latest end of a driver that was seen while nobody used it, in milliseconds since 1970.
    pub last_job_end_ms: u64,
    /// The time at which its users were last known, in seconds since 1970 and up to 20 s too early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_at: Option<f64>,
    /// The UID of the head pod of which that was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// Memory of a placement group whose pods did not all get a Kubernetes node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GangMemory {
    /// The number of times in a row that this happened.
    pub times: u32,
    /// The time at which it is tried again, in seconds since 1970.
    pub retry_at: f64,
}

/// Memory of a jump that was not admitted: of replicas that were asked for together and whose pods
/// kept their scheduling gates.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct JumpMemory {
    /// The time at which a part of it was last taken back, in seconds since 1970.
    pub at: f64,
    /// The time at which pods last had scheduling gates, in seconds since 1970.
    pub seen_at: f64,
    /// The number of times in a row that a larger step was not admitted.
    pub times: u32,
    /// The number of replicas that its groups would have had with it; absent where another group is
    /// tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// The number of replicas of its groups that were admitted then, or fewer since.
    pub admitted: u64,
    /// Its groups, by name.
    pub groups: BTreeMap<String, JumpTurn>,
}

/// The turn of a group of a jump, of which not even one replica was admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct JumpTurn {
    /// The number of times that it has made way for another group.
    pub times: u32,
    /// The time until which it makes way, in seconds since 1970.
    pub until: f64,
}

/// Memory of a node above a maximum that was asked to leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExcessMemory {
    /// The time at which it was first asked to leave, in seconds since 1970.
    pub since: f64,
    /// The time at which it was last stopped because its time was over, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<f64>,
}

/// The departure that was announced to the Ray node of a pod that is about to leave, when it was
/// drained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ToldDeparture {
    /// The time at which the pod is gone, in seconds since 1970.
    pub gone_at: f64,
    /// True if that time was known, and not assumed.
    pub is_known: bool,
}

/// Memory of an idle pod that was needed for headroom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StandbyMemory {
    /// The time since which it has not been needed any more, in seconds since 1970; absent while it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released_at: Option<f64>,
}

/// The growth back-off of a group whose new pods did not grow to the size that they were launched
/// for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GrowthBackoff {
    /// The number of times in a row that this happened.
    pub failures: u32,
    /// The time of the last failure, in seconds since 1970.
    pub at: f64,
    /// True if a pod that had just started showed it, so that pods were launched for their first size
    /// from then on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_start: bool,
}

/// A launch that was decided on, or a pod that was seen.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instance {
    /// The name of its group.
    pub group: String,
    /// The name of its pod, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The status of the launch or the pod.
    pub status: InstanceStatus,
    /// The time at which it got to this status, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// The number of equal launches that the entry stands for; an entry with a pod stands for one.
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

/// The status of a launch or a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum InstanceStatus {
    /// The launch was decided on, and KubeRay was not asked for it yet.
    Queued,
    /// KubeRay was asked for the launch, and no pod was seen.
    Requested,
    /// The pod was seen. It is remembered for its place in the list alone, with strategy `Ray`.
    Allocated,
    /// The Ray node of the pod was asked to stop.
    StopRequested,
}
