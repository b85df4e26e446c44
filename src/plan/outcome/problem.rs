//! Problems of a cluster's objects: where something is wrong, and what comes of it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::problem_reason::ProblemReason;
use crate::ray::ippr::ANNOTATION;
use crate::text::text_in_json;

/// A problem of the cluster's objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[error("{at}: {reason}; {effect}")]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The place of the problem.
    pub at: ProblemPlace,
    /// The fault at that place.
    pub reason: ProblemReason,
    /// The consequence: what is not done, or done otherwise.
    pub effect: ProblemEffect,
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ProblemPlace {
    /// A field of the RayCluster, by its path.
    #[error("{0}")]
    Field(String),
    /// The annotation `ray.io/ippr`, and in it the entry of a group.
    #[error("metadata.annotations[{ANNOTATION:?}]{}", entry(group.as_deref()))]
    Ippr {
        /// The name of the group, if the problem is its entry's.
        group: Option<String>,
    },
    /// A worker group, by its name.
    #[error("group {0}")]
    Group(String),
    /// A pod, by its name.
    #[error("pod {0}")]
    Pod(String),
    /// The Ray node in a pod, by the name of the pod.
    #[error("Ray node of pod {pod}")]
    RayNode {
        /// The name of the pod.
        pod: String,
    },
    /// The demand of `request_resources()`.
    #[error("request_resources()")]
    RequestResources,
    /// A placement group, by its title.
    #[error("placement group {0}")]
    PlacementGroup(String),
    /// All demand of the cluster.
    #[error("the cluster's demand")]
    Demand,
    /// All workers of the cluster.
    #[error("the cluster's workers")]
    Workers,
    /// Standby: headroom and schedules.
    #[error("the cluster's headroom")]
    Standby,
}

/// The consequence of a problem: what is not done, or done otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemEffect {
    /// The group of that title is left as it is.
    #[error("{0} is left as it is")]
    GroupLeft(String),
    /// The group of that title does not grow.
    #[error("{0} does not grow in place")]
    GroupNotGrown(String),
    /// Groups that the annotation `ray.io/ippr` lists do not grow.
    #[error("the groups concerned do not grow in place")]
    GroupsNotGrown,
    /// There is no group that a worker could be launched of.
    #[error("no worker is launched")]
    NoWorkers,
    /// The idle timeout counts as Ray would count it.
    #[error("idle nodes go as it says, null as if it was absent")]
    TimeoutAsWritten,
    /// The labels count, although Kubernetes would not take them.
    #[error("the labels count as they are written")]
    LabelsAsWritten,
    /// The pod is not the planner's to change.
    #[error("it is left alone")]
    LeftAlone,
    /// The pod is not changed.
    #[error("it is left as it is")]
    LeftAsItIs,
    /// The pod stays until somebody deletes it, by its name.
    #[error("it is left as it is; delete it with `kubectl delete pod {0}`")]
    LeftToUsers(String),
    /// The pod does not grow.
    #[error("it does not grow in place")]
    NotGrown,
    /// The Ray node counts as not running.
    #[error("it counts as not running")]
    NotRunning,
    /// The Ray node counts with no more than its total, and so do those to come.
    #[error("only what there is counts")]
    CountedUpToTotal,
    /// The Ray node takes no demand.
    #[error("nothing is placed on it")]
    TakesNothing,
    /// Of several only the first counts.
    #[error("only the first counts")]
    OnlyFirst,
    /// The placement group is not placed.
    #[error("it is not placed")]
    NotPlaced,
    /// Nothing is kept ready.
    #[error("nothing is kept ready; ask for fewer different requests")]
    NothingKept,
    /// The decision is given up.
    #[error("nothing is launched, resized or removed; ask with fewer different requests at once")]
    NothingDone,
    /// Demand goes to other groups where it fits there.
    #[error("demand that fits another group goes there")]
    OthersFirst,
    /// Nothing counts on the pod.
    #[error("no demand counts on it")]
    NotCounted,
    /// `replicas` are raised for demand, and other groups used.
    #[error("replicas are raised within maxReplicas, and other groups are used")]
    ReplicasRaised,
    /// Fewer pods are asked for at once, until what can be admitted is.
    #[error("fewer are asked for at once, so that what can be admitted is")]
    FewerAtOnce,
    /// Launches end at the most workers that a cluster may have.
    #[error(
        "no more are launched; set reconcile.maxWorkersPerCluster in a RayPolicy if so \
         many are meant"
    )]
    NoMoreLaunched,
}

/// The entry of a group in the annotation, as the end of a path.
fn entry(group: Option<&str>) -> String {
    group
        .map(|group| format!(".groups.{group}"))
        .unwrap_or_default()
}

text_in_json!(ProblemPlace, ProblemEffect);
