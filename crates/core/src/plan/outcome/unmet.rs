//! Demands that cannot be met, and why.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::amounts::amount_text;
use crate::plan::slices::gangs::reason::NextTry;
use crate::plan::slices::growth_backoff::reason::CountedAtBase;
use crate::text::text_in_json;

/// A demand that cannot be met.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unmet {
    /// The kind of the demand.
    pub kind: DemandKind,
    /// The position of the demand in the list of its kind in Ray's report.
    pub index: usize,
    /// The number of units of the demand that are left. Of a placement group or a constraint that
    /// is always all of them.
    pub count: u64,
    /// The demand in words, for people.
    pub demand: String,
    /// The reasons why the demand cannot be met, one per group.
    pub reasons: Vec<UnmetReason>,
}

impl Unmet {
    /// The first reasons in one line, for people.
    pub fn why(&self, most: usize) -> String {
        let reasons = self.reasons.iter().take(most);
        let reasons: Vec<String> = reasons.map(UnmetReason::to_string).collect();
        reasons.join("; ")
    }
}

/// The kind of a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DemandKind {
    /// A constraint that `request_resources()` set.
    Constraint,
    /// A placement group.
    PlacementGroup,
    /// Pending tasks or actors.
    Tasks,
}

/// A reason why a demand cannot be met.
///
/// No text says for how many seconds it still holds, because Ray is sent each text whenever it changes.
#[derive(Debug, Clone, PartialEq, derive_more::Display)]
pub enum UnmetReason {
    /// A bundle of the placement group has several placement constraints, which Ray cannot place.
    #[display("a bundle has more than one placement constraint")]
    SeveralPlacementConstraints,
    /// Not all pods of the placement group got a Kubernetes node, so they were given up.
    #[display(
        "Kubernetes has no room for all of its pods at once, so they were given up; it is \
         tried again {_0}"
    )]
    GivenUp(NextTry),
    /// It asks for resources of a placement group, by its id, that no node has yet. No growth and no new node adds to
    /// them.
    #[display("it waits for placement group {_0}, which is not placed yet")]
    GroupUnplaced(String),
    /// It asks for resources of a placement group that is placed and has no room left.
    #[display("it waits for room in placement group {_0}")]
    GroupFull(String),
    /// All of the demand is placed, or nothing of it.
    #[display("all of it must fit at once")]
    AllAtOnce,
    /// The nodes of a group do not take it.
    #[display("group {group}: {why}")]
    Group {
        /// The name of the group.
        group: String,
        /// The reason why they do not.
        why: Shortfall,
    },
    /// So many more groups do not take it either.
    #[display("and {_0} more groups")]
    MoreGroups(usize),
    /// More demands cannot be met than reasons are given for.
    #[display("so much demand waits that reasons are given for the first demands only")]
    NotSaid,
}

/// The reason why a group's nodes do not take a request.
#[derive(Debug, Clone, PartialEq, derive_more::Display)]
pub enum Shortfall {
    /// The request asks for other labels.
    #[display("its labels do not match")]
    OtherLabels,
    /// The request asks for labels, and the group has none.
    #[display("it has no labels: write those that its nodes have under labels of the group")]
    NoLabels,
    /// A node has less of a resource than the request needs.
    #[display(
        "a node has {resource} {}, {} is needed{}{}",
        amount_text(resource, *has), amount_text(resource, *needed),
        in_brackets(uncounted.as_ref()), in_brackets(at_base.as_ref())
    )]
    TooSmall {
        /// The name of the resource.
        resource: String,
        /// The amount that a node has, in Ray's unit.
        has: f64,
        /// The amount that the request needs, in Ray's unit.
        needed: f64,
        /// The devices that Ray does not count as the resource unless the group says so, with the remedy, in words.
        uncounted: Option<Box<str>>,
        /// The reason why new nodes count at their base size, if they do.
        at_base: Option<CountedAtBase>,
    },
    /// The group is the head group, of which there is one node.
    #[display("there is one head")]
    OneHead,
    /// The group has as many replicas as its `maxReplicas` allows.
    #[display("at maxReplicas {_0}")]
    MaxReplicas(i64),
    /// The cluster has as many workers as it may have.
    #[display("the cluster has the {_0} workers that it may have")]
    MaxWorkers(u64),
    /// Every node is full, and the cluster has as many as it may have.
    #[display("its nodes are full, and the cluster is at its maximum")]
    Full,
}

/// A remark at the end of a sentence, if there is one.
fn in_brackets(remark: Option<&impl fmt::Display>) -> String {
    remark
        .map(|remark| format!(" ({remark})"))
        .unwrap_or_default()
}

text_in_json!(UnmetReason);
