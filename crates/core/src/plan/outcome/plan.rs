//! The plan: what a decision says is to be done.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::amounts::mebibytes;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::problem::{Problem, ProblemReason};
use crate::plan::outcome::resize_note::ResizeNote;
use crate::plan::outcome::unmet::Unmet;
use crate::plan::slices::departures::reason::Departure;
use crate::plan::slices::standby::reason::StandbyLaunch;
use crate::plan::strategy::Strategy;
use crate::ray::resource::CpuAndMemory;
use crate::snapshot::History;
use crate::text::text_in_json;

/// A plan: what is to be done about a RayCluster now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The RayCluster, as `namespace/name`.
    pub cluster: String,
    /// The strategy with which the plan was decided.
    pub strategy: Strategy,
    /// The reason for doing nothing at all; absent if something may be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<PlanWait>,
    /// The worker groups, in the RayCluster's order.
    pub groups: Vec<GroupPlan>,
    /// The pods to resize in place.
    pub resizes: Vec<PodResize>,
    /// The raylets that are to be told the size of their pod.
    pub raylet_syncs: Vec<RayletSync>,
    /// The notes about resizes that pods are to have, each with the name of its pod, where they differ from the notes
    /// that the pods have now. They are part of how the plan is carried out, not of what it says.
    #[serde(skip)]
    pub notes: Vec<(String, ResizeNote)>,
    /// The workers whose marks for node autoscalers change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<NodeHold>,
    /// The Ray nodes to drain. Their pods are deleted once Ray has stopped in them.
    pub drains: Vec<NodeDrain>,
    /// The Ray nodes above a maximum that drain and are there until their work has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excess: Vec<ExcessNode>,
    /// The pods that are about to leave with their Kubernetes node, or by an eviction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub departures: Vec<Departure>,
    /// The end of the cluster, if nobody has used it for long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ClusterEnd>,
    /// The demands that cannot be met.
    pub unmet: Vec<Unmet>,
    /// The problems of the cluster's objects, and what is not done because of them.
    pub problems: Vec<Problem>,
    /// The history that the controller is to remember for the next round.
    pub remember: History,
}

/// The changes that a plan makes to a worker group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupPlan {
    /// The name.
    pub name: String,
    /// `replicas` as the RayCluster has it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_now: Option<i64>,
    /// `replicas` as the plan sets it.
    pub replicas: i64,
    /// The number of new nodes needed.
    pub launch: u64,
    /// The number of nodes that KubeRay is asked for in this round, including nodes that were
    /// decided on in earlier rounds.
    pub launch_now: u64,
    /// The size that the pods of these are to be made with; absent where that is the size of their
    /// template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_size: Option<CpuAndMemory>,
    /// The new nodes that no demand needs, with the reasons for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby: Vec<StandbyLaunch>,
    /// The number of launches of earlier rounds not needed any more.
    pub cancel: u64,
    /// The pods to delete, and why. Ray runs in none of them.
    pub delete: Vec<Deletion>,
    /// Pods of groups that are no longer in the RayCluster, which KubeRay deletes through the list
    /// of this group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Deletion>,
}

impl GroupPlan {
    /// All pods that enter the group's list of pods to delete.
    pub fn deletions(&self) -> impl Iterator<Item = &Deletion> + Clone {
        self.delete.iter().chain(&self.orphans)
    }
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The name.
    pub pod: String,
    /// The cause of the removal.
    pub cause: RemovalCause,
}

/// A pod to resize in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodResize {
    /// The name.
    pub pod: String,
    /// The CPU that the pod has now, in thousandths of cores.
    pub cpu_milli_now: i64,
    /// The memory that the pod has now, in bytes.
    pub memory_bytes_now: i64,
    /// The CPU to ask for as limit, or as request where there is no limit, in thousandths of cores.
    pub cpu_milli: i64,
    /// The memory to ask for as limit, or as request where there is no limit, in bytes.
    pub memory_bytes: i64,
    /// True if CPU or memory shrinks, so that the raylet must give it up before the pod does.
    pub raylet_first: bool,
    /// Seconds for which the CPU that the pod gives up was spare; absent where the pod is resized
    /// for another reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare_seconds: Option<u32>,
    /// The reason why the pod gets another amount of memory, if that is for what is really in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_reason: Option<MemoryReason>,
    /// The demand that runs in the pod once it has grown, where it grows for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<GrowthDemand>,
}

/// The demand for which a pod grows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display)]
#[serde(rename_all = "camelCase")]
#[display(
    "for {count} x {demand}{}",
    if *others > 0 { format!(" and {others} more") } else { String::new() }
)]
pub struct GrowthDemand {
    /// The first of it, in words for people.
    pub demand: String,
    /// The number of its units.
    pub count: u64,
    /// The number of units of other demands.
    pub others: u64,
}

/// The reason why a pod gets another amount of memory, by what is really in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display)]
#[serde(rename_all = "camelCase")]
pub enum MemoryReason {
    /// The memory of the pod is nearly full, or will be soon.
    #[serde(rename_all = "camelCase")]
    #[display("{} is in use", mebibytes(*bytes))]
    NearlyFull {
        /// The bytes in use.
        bytes: i64,
    },
    /// The pod was given more because its memory was nearly full, and it is not any more.
    #[serde(rename_all = "camelCase")]
    #[display("no more than {} was in use for {seconds} s", mebibytes(*bytes))]
    MostlyFree {
        /// The most bytes in use in that time.
        bytes: i64,
        /// Seconds for which that was so.
        seconds: u32,
    },
}

/// A raylet that is to be told the size of its pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RayletSync {
    /// The name of the pod.
    pub pod: String,
    /// The id of the Ray node, in hexadecimal.
    pub node_id: String,
    /// The CPU of the pod, in thousandths of cores.
    pub cpu_milli: i64,
    /// The memory of the pod, in bytes.
    pub memory_bytes: i64,
}

/// A worker that is to be marked for node autoscalers, or whose mark is to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeHold {
    /// The name of the pod.
    pub pod: String,
    /// True if the pod is to hold its Kubernetes node from now on.
    pub holds: bool,
}

/// A Ray node to drain.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDrain {
    /// The name of its pod.
    pub pod: String,
    /// The name of its group.
    pub group: String,
    /// The id of the Ray node, in hexadecimal.
    pub node_id: String,
    /// The cause of the removal.
    pub cause: RemovalCause,
    /// Milliseconds for which the node has been idle.
    pub idle_ms: i64,
    /// The time at which the node is stopped, whatever work it still has, in seconds since 1970. A
    /// time that has come stops it at once. Absent where the node may take as long as its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_at: Option<f64>,
    /// Source and time of the departure, if that is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departure: Option<Departure>,
}

/// A Ray node above a maximum that drains: it takes no new work, and goes when it has none left or
/// when its time is over.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcessNode {
    /// The name of its pod.
    pub pod: String,
    /// The name of its group.
    pub group: String,
    /// The maximum that it is above.
    pub cause: RemovalCause,
    /// The time at which it was asked to leave, in seconds since 1970; absent where nobody
    /// remembers that, as in a look from a workstation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// The time at which it is stopped, whatever work it still has, in seconds since 1970; absent
    /// where that is not known either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_at: Option<f64>,
    /// Seconds for which it may finish its work.
    pub longest_s: f64,
    /// Amounts that its work holds of each resource that Ray counts; work that holds nothing is not
    /// seen.
    pub holds: BTreeMap<String, f64>,
}

/// The end of a cluster that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterEnd {
    /// The action that ends it.
    pub policy: ClusterEndPolicy,
    /// The time since which nobody has used it, in seconds since 1970.
    pub unused_since: f64,
    /// The kinds of users that count.
    pub counted: CountedUsers,
}

/// The users whose use keeps a cluster that ends when nobody uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum CountedUsers {
    /// Drivers only, as for Ray's autoscaler.
    Drivers,
    /// Drivers and detached actors, Ray Serve's for example.
    DriversAndDetachedActors,
}

impl CountedUsers {
    /// The users that count for a strategy: Ray counts drivers only, so that a cluster that serves
    /// from detached actors ends under its users.
    pub fn of(strategy: Strategy) -> Self {
        if strategy.is_rayfit() {
            Self::DriversAndDetachedActors
        } else {
            Self::Drivers
        }
    }

    /// The absence of such users, in words for people.
    pub fn none(self) -> &'static str {
        match self {
            Self::Drivers => "no driver",
            Self::DriversAndDetachedActors => "neither a driver nor a detached actor",
        }
    }
}

/// The action that ends a cluster that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum ClusterEndPolicy {
    /// It is suspended, until somebody removes `spec.idleSuspend`.
    Suspend,
    /// It is deleted.
    Delete,
}

/// The reason for doing nothing at all.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum PlanWait {
    /// The head does not run.
    #[display("the head does not run yet")]
    NoHead,
    /// The decision took more steps than it may. It would be given up again, as long as nothing
    /// changes.
    #[display("{}", ProblemReason::TooMuchWork)]
    GivenUp,
    /// The cluster cannot be observed, for a reason in words.
    Blind(String),
}

text_in_json!(PlanWait);
