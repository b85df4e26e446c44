//! What a decision says is to be done.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::resize_note::PodNote;
use crate::plan::strategy::Strategy;
use crate::snapshot::History;

/// What is to be done about a RayCluster now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// `namespace/name` of the RayCluster.
    pub cluster: String,
    /// How it was decided.
    pub strategy: Strategy,
    /// Why nothing is done at all, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Deciding took more steps than it may: it would again, as long as nothing changes.
    #[serde(skip)]
    pub given_up: bool,
    /// The worker groups, in the RayCluster's order.
    pub groups: Vec<GroupPlan>,
    /// Pods to resize.
    pub resizes: Vec<PodResize>,
    /// Raylets to tell the size of their pod.
    pub raylet_syncs: Vec<RayletSync>,
    /// What is to stand on pods about their resizes, where it is not what stands there. Part of
    /// how the plan is carried out, not of what it says.
    #[serde(skip)]
    pub notes: Vec<PodNote>,
    /// Ray nodes to drain; their pods are deleted once Ray has stopped.
    pub drains: Vec<NodeDrain>,
    /// Demands that cannot be met.
    pub unmet: Vec<Unmet>,
    /// What is wrong with the cluster's objects, and what is not done because of it.
    pub problems: Vec<Problem>,
    /// What to remember for the next round.
    pub remember: History,
}

/// What becomes of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupPlan {
    /// Its name.
    pub name: String,
    /// `replicas` as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_now: Option<i64>,
    /// `replicas` as it should be.
    pub replicas: i64,
    /// New nodes that are needed.
    pub launch: u64,
    /// How many nodes to ask KubeRay for in this round, those decided in earlier rounds included.
    pub launch_now: u64,
    /// Launches of earlier rounds that are not needed any more.
    pub cancel: u64,
    /// Pods to delete, and why: never one in which Ray runs.
    pub delete: Vec<Deletion>,
    /// Pods of groups that are no longer in the RayCluster, to delete by way of this group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Deletion>,
}

impl GroupPlan {
    /// Everything that enters the group's list of pods to delete.
    pub fn deletions(&self) -> impl Iterator<Item = &Deletion> + Clone {
        self.delete.iter().chain(&self.orphans)
    }
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// Its name.
    pub pod: String,
    /// Why.
    pub cause: RemovalCause,
}

/// A pod to resize in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodResize {
    /// Its name.
    pub pod: String,
    /// Thousandths of cores as it is.
    pub cpu_milli_now: i64,
    /// Bytes as it is.
    pub memory_bytes_now: i64,
    /// Thousandths of cores to ask for, as limit or else as request.
    pub cpu_milli: i64,
    /// Bytes to ask for, as limit or else as request.
    pub memory_bytes: i64,
    /// Something shrinks: the raylet must give it up before the pod does.
    pub raylet_first: bool,
}

/// A raylet to tell the size of its pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RayletSync {
    /// The pod.
    pub pod: String,
    /// The Ray node id in hexadecimal.
    pub node_id: String,
    /// Thousandths of cores.
    pub cpu_milli: i64,
    /// Bytes.
    pub memory_bytes: i64,
}

/// A Ray node to drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDrain {
    /// Its pod.
    pub pod: String,
    /// Its group.
    pub group: String,
    /// The Ray node id in hexadecimal.
    pub node_id: String,
    /// Why.
    pub cause: RemovalCause,
    /// For how long it has been idle, in milliseconds.
    pub idle_ms: i64,
}

/// A demand that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unmet {
    /// What it is of.
    pub kind: DemandKind,
    /// Its position in the list of its kind in Ray's report.
    pub index: usize,
    /// How many units of it are left; of a placement group or constraint, all.
    pub count: u64,
    /// What it is, for people.
    pub demand: String,
    /// Why, one reason per group.
    pub reasons: Vec<String>,
}

/// What a demand is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DemandKind {
    /// `request_resources()`
    Constraint,
    /// A placement group.
    PlacementGroup,
    /// Tasks or actors.
    Tasks,
}

/// Something wrong in the cluster's objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where.
    pub at: String,
    /// What is wrong.
    pub reason: String,
    /// What is not done because of it.
    pub effect: String,
}
