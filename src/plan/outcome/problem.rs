//! Problems of a cluster's objects: where something is wrong, and what comes of it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::json_text::text_in_json;
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::ray::ippr::ANNOTATION;

/// A problem of the cluster's objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The place of the problem.
    pub at: ProblemPlace,
    /// What is wrong there.
    pub reason: ProblemReason,
    /// What is not done, or done otherwise, because of the problem.
    pub effect: ProblemEffect,
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemPlace {
    /// A field of the RayCluster, by its path.
    Field(String),
    /// The annotation `ray.io/ippr`, and in it the entry of a group.
    Ippr {
        /// The name of the group, if the problem is its entry's.
        group: Option<String>,
    },
    /// A worker group, by its name.
    Group(String),
    /// A pod, by its name.
    Pod(String),
    /// The Ray node in a pod, by the name of the pod.
    RayNode {
        /// The name of the pod.
        pod: String,
    },
    /// What `request_resources()` asked for.
    RequestResources,
    /// A placement group, by its title.
    PlacementGroup(String),
    /// All demand of the cluster.
    Demand,
    /// All workers of the cluster.
    Workers,
    /// What is kept ready: headroom and schedules.
    Standby,
}

/// What is not done, or done otherwise, because of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemEffect {
    /// The group of that title is left as it is.
    GroupLeft(String),
    /// The group of that title does not grow.
    GroupNotGrown(String),
    /// Groups that the annotation `ray.io/ippr` lists do not grow.
    GroupsNotGrown,
    /// There is no group that a worker could be launched of.
    NoWorkers,
    /// The idle timeout counts as Ray would count it.
    TimeoutAsWritten,
    /// The labels count, although Kubernetes would not take them.
    LabelsAsWritten,
    /// The pod is not the planner's to change.
    LeftAlone,
    /// The pod is not changed.
    LeftAsItIs,
    /// The pod stays until somebody deletes it, by its name.
    LeftToUsers {
        /// The name of the pod.
        pod: String,
    },
    /// The pod does not grow.
    NotGrown,
    /// The Ray node counts as not running.
    NotRunning,
    /// The Ray node counts with no more than its total, and so do those to come.
    CountedUpToTotal,
    /// The Ray node takes no demand.
    TakesNothing,
    /// Of several only the first counts.
    OnlyFirst,
    /// The placement group is not placed.
    NotPlaced,
    /// Nothing is kept ready.
    NothingKept,
    /// The decision is given up.
    NothingDone,
    /// Demand goes to other groups where it fits there.
    OthersFirst,
    /// Nothing counts on the pod.
    NotCounted,
    /// `replicas` are raised for demand, and other groups used.
    ReplicasRaised,
    /// Fewer pods are asked for at once, until what can be admitted is.
    FewerAtOnce,
    /// Launches end at the most workers that a cluster may have.
    NoMoreLaunched,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, reason, effect } = self;
        write!(f, "{at}: {reason}; {effect}")
    }
}

impl fmt::Display for ProblemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => f.write_str(path),
            Self::Ippr { group } => {
                write!(f, "metadata.annotations[{ANNOTATION:?}]")?;
                match group {
                    Some(group) => write!(f, ".groups.{group}"),
                    None => Ok(()),
                }
            }
            Self::Group(name) => write!(f, "group {name}"),
            Self::Pod(name) => write!(f, "pod {name}"),
            Self::RayNode { pod } => write!(f, "Ray node of pod {pod}"),
            Self::RequestResources => f.write_str("request_resources()"),
            Self::PlacementGroup(title) => write!(f, "placement group {title}"),
            Self::Demand => f.write_str("the cluster's demand"),
            Self::Workers => f.write_str("the cluster's workers"),
            Self::Standby => f.write_str("the cluster's headroom"),
        }
    }
}

impl fmt::Display for ProblemEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GroupLeft(title) => return write!(f, "{title} is left as it is"),
            Self::GroupNotGrown(title) => return write!(f, "{title} does not grow in place"),
            Self::LeftToUsers { pod } => {
                return write!(
                    f,
                    "it is left as it is; delete it with `kubectl delete pod {pod}`"
                );
            }
            Self::GroupsNotGrown => "the groups concerned do not grow in place",
            Self::NoWorkers => "no worker is launched",
            Self::TimeoutAsWritten => "idle nodes go as it says, null as if it was absent",
            Self::LabelsAsWritten => "the labels count as they are written",
            Self::LeftAlone => "it is left alone",
            Self::LeftAsItIs => "it is left as it is",
            Self::NotGrown => "it does not grow in place",
            Self::NotRunning => "it counts as not running",
            Self::CountedUpToTotal => "only what there is counts",
            Self::TakesNothing => "nothing is placed on it",
            Self::OnlyFirst => "only the first counts",
            Self::NotPlaced => "it is not placed",
            Self::NothingDone => {
                "nothing is launched, resized or removed; ask with fewer different requests at once"
            }
            Self::OthersFirst => "demand that fits another group goes there",
            Self::NotCounted => "no demand counts on it",
            Self::ReplicasRaised => {
                "replicas are raised within maxReplicas, and other groups are used"
            }
            Self::FewerAtOnce => "fewer are asked for at once, so that what can be admitted is",
            Self::NothingKept => "nothing is kept ready; ask for fewer different requests",
            Self::NoMoreLaunched => {
                "no more are launched; set reconcile.maxWorkersPerCluster in a RayPolicy if so \
                 many are meant"
            }
        })
    }
}

text_in_json!(ProblemPlace, ProblemEffect);
