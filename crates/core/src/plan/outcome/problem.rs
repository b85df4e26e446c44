//! Problems of a cluster's objects: where something is wrong, what that is, and what comes of it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::resize_note::STATUS_ANNOTATION;
use crate::plan::slices::blocked::reason::BlockReason;
use crate::ray::ippr::{ANNOTATION, IpprProblem};
use crate::ray::node_resources::ResourceError;
use crate::snapshot::whole_moment;
use crate::text::text_in_json;

/// The consequence of an amount above what there is.
pub(crate) const COUNTED_UP_TO_TOTAL: &str = "only what there is counts";

/// A problem of the cluster's objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display)]
#[display("{at}: {reason}; {effect}")]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The place of the problem.
    pub at: ProblemPlace,
    /// The fault at that place.
    pub reason: ProblemReason,
    /// The consequence: what is not done, or done otherwise.
    pub effect: Cow<'static, str>,
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
pub enum ProblemPlace {
    /// A field of the RayCluster, by its path.
    Field(String),
    /// The annotation `ray.io/ippr`, and in it the entry of a group.
    #[display("metadata.annotations[{ANNOTATION:?}]{}", group.as_ref().map(|group| format!(".groups.{group}")).unwrap_or_default())]
    Ippr {
        /// The name of the group, if the problem is its entry's.
        group: Option<String>,
    },
    /// A worker group, by its name.
    #[display("group {_0}")]
    Group(String),
    /// A pod, by its name.
    #[display("pod {_0}")]
    Pod(String),
    /// The Ray node in a pod, by the name of the pod.
    #[display("Ray node of pod {pod}")]
    RayNode {
        /// The name of the pod.
        pod: String,
    },
    /// The demand of `request_resources()`.
    #[display("request_resources()")]
    RequestResources,
    /// A placement group, by its title.
    #[display("placement group {_0}")]
    PlacementGroup(String),
    /// All demand of the cluster.
    #[display("the cluster's demand")]
    Demand,
    /// All workers of the cluster.
    #[display("the cluster's workers")]
    Workers,
    /// Standby: headroom and schedules.
    #[display("the cluster's headroom")]
    Standby,
}

/// The fault at the place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display, derive_more::From)]
pub enum ProblemReason {
    /// `groupName` is absent.
    #[display("it has no groupName: give it one")]
    NoName,
    /// `groupName` would be obeyed where it is shown.
    #[display("its groupName has control characters or ones that turn text around: rename it")]
    BadName,
    /// Ray cannot derive the resources of a group's nodes.
    #[from]
    Resources(ResourceError),
    /// `minReplicas` is absent.
    #[display("it has no minReplicas: write 0 or more")]
    NoMinReplicas,
    /// `maxReplicas` is absent.
    #[display("it has no maxReplicas: write the most that it may have")]
    NoMaxReplicas,
    /// A replica has no pods, and Ray divides by their number.
    #[display("numOfHosts is {_0}, and Ray divides by it: write 1 or more, or leave it out")]
    NoHosts(i64),
    /// The minimum is above the maximum.
    #[display("minReplicas {min} is above maxReplicas {max}: raise the latter")]
    MinAboveMax {
        /// `minReplicas`
        min: i64,
        /// `maxReplicas`
        max: i64,
    },
    /// Ray cannot read the annotation `ray.io/ippr` as it was meant.
    #[display("it cannot be read: {_0}")]
    Ippr(IpprProblem),
    /// A start parameter fixes the size of a group that the annotation `ray.io/ippr` lists.
    #[display("rayStartParams has {_0:?}, which fixes the size: remove it")]
    SizeFixed(&'static str),
    /// The base size of such a group is not known.
    #[display("the ray container has no CPU or no memory request: give it both")]
    NoRequests,
    /// A resize would restart the container.
    #[display("its resizePolicy restarts the container: write NotRequired")]
    Restarts,
    /// A value of the group's entry in the annotation is missing or cannot be read.
    #[display("max-cpu, max-memory and resize-timeout are needed, as quantities and seconds")]
    IncompleteLimits,
    /// The first container of a pod has neither a limit nor a request of a resource.
    #[display("the pod's first container has neither a {_0} limit nor a request")]
    NoAmount(&'static str),
    /// The first container of a pod has no request of a resource.
    #[display("the pod's first container has no {_0} request")]
    NoRequest(&'static str),
    /// The note about the resizes of a pod is not JSON, with the message of the parser.
    #[display("its annotation {STATUS_ANNOTATION} is not JSON ({_0}): remove it")]
    NoteNotJson(String),
    /// A group cannot be served now.
    #[from]
    Blocked(BlockReason),
    /// `workerGroupSpecs` is not there.
    #[display("it is absent: write [] for a cluster without workers")]
    NoWorkerGroups,
    /// An idle timeout that Ray cannot count with.
    #[display("{value} is not a time: write seconds, or leave it out")]
    NotATime {
        /// The value, as it is written.
        value: String,
    },
    /// A label of a group that is not in Kubernetes' syntax.
    #[display("{key:?} is not in Kubernetes' syntax of labels, key or value")]
    BadLabel {
        /// The key of the label.
        key: String,
    },
    /// A pod of the cluster lacks a label that Ray reads.
    #[display("it has the label ray.io/cluster, but not {_0}")]
    NoPodLabel(&'static str),
    /// A pod of a group that is not in the RayCluster.
    #[display("its group {_0:?} is not in the RayCluster")]
    UnknownGroup(String),
    /// A pod of a group that is gone, which no other group's list can delete.
    #[display("its group {_0} was removed, and KubeRay deletes pods of other groups only")]
    RemovedGroup(String),
    /// Ray reports a node without its status.
    #[display("Ray does not report its status")]
    StatusUnsaid,
    /// Ray reports more free of a resource than there is.
    #[display("Ray reports more free {_0} than it has")]
    FreeAboveTotal(String),
    /// Ray reports so many constraints, though one `request_resources()` replaces the other.
    #[display("Ray reports {_0} of them, but there can be only one at a time")]
    SeveralConstraints(usize),
    /// A bundle of a placement group has several placement constraints.
    #[display("a bundle of it has more than one placement constraint")]
    SeveralPlacementConstraints,
    /// The work budget of the decision is used up.
    #[display(
        "deciding about it takes more steps than one cluster may take; it has too many different \
         requests, groups or nodes"
    )]
    TooMuchWork,
    /// Pods of several replicas at once were not admitted: their scheduling gates stayed.
    #[display("scheduling gates of so many pods at once were not removed")]
    JumpRefused,
    /// Pods that were to be gone are still there, and KubeRay counts them.
    #[display(
        "{pods} should be gone since {}, but are still terminating, and KubeRay counts them; if their \
         Kubernetes node is lost, delete it, or them with `kubectl delete pod --force`",
        whole_moment(*since)
    )]
    Hanging {
        /// The first of these pods by name, and how many more there are.
        pods: String,
        /// The time at which the first of them was to be gone, in whole seconds since 1970.
        since: i64,
    },
    /// Ray reports another amount of a resource than the template of the group gives.
    #[display("its template gives a Ray node {resource}: {amounts}")]
    OtherAmount {
        /// The name of the resource.
        resource: String,
        /// The amount that KubeRay passes from the template, and the one that a named raylet reports.
        amounts: String,
    },
    /// More workers are needed than one cluster may have, with the most that it may have.
    #[display("more than {_0} are needed, which is the most that a cluster may have")]
    TooManyWorkers(u64),
}

impl ProblemReason {
    /// The identity of the reason: the same as long as the same is wrong, whatever the text says. It lacks
    /// the numbers and the words of others that may change meanwhile.
    #[must_use]
    pub fn identity(&self) -> Self {
        // Every kind of reason is listed, so that nobody adds one without deciding what it is known
        // by.
        let mut reason = self.clone();
        match &mut reason {
            Self::MinAboveMax { min, max } => (*min, *max) = (0, 0),
            Self::Blocked(blocked) => *blocked = blocked.identity(),
            Self::NoteNotJson(text)
            | Self::NotATime { value: text }
            | Self::FreeAboveTotal(text)
            | Self::OtherAmount { amounts: text, .. } => text.clear(),
            Self::SeveralConstraints(count) => *count = 0,
            Self::Hanging { pods, since } => {
                pods.clear();
                *since = 0;
            }
            Self::TooManyWorkers(most) => *most = 0,
            Self::NoName
            | Self::BadName
            | Self::NoHosts(_)
            | Self::Resources(_)
            | Self::NoMinReplicas
            | Self::NoMaxReplicas
            | Self::Ippr(_)
            | Self::SizeFixed(_)
            | Self::NoRequests
            | Self::Restarts
            | Self::IncompleteLimits
            | Self::NoAmount(_)
            | Self::NoRequest(_)
            | Self::NoWorkerGroups
            | Self::BadLabel { .. }
            | Self::NoPodLabel(_)
            | Self::UnknownGroup(_)
            | Self::RemovedGroup(_)
            | Self::StatusUnsaid
            | Self::SeveralPlacementConstraints
            | Self::JumpRefused
            | Self::TooMuchWork => {}
        }
        reason
    }
}

text_in_json!(ProblemPlace, ProblemReason);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_varies_makes_no_other_reason() {
        let several = |count| ProblemReason::SeveralConstraints(count);
        assert_ne!(several(2).to_string(), several(3).to_string());
        assert_eq!(several(2).identity(), several(3).identity());
        assert_ne!(
            several(2).identity(),
            ProblemReason::TooManyWorkers(2).identity(),
            "something else is wrong"
        );
        let label = |key: &str| ProblemReason::BadLabel {
            key: key.to_owned(),
        };
        assert_ne!(label("a").identity(), label("b").identity());
    }
}
