//! Demands that cannot be met, and why.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::json_text::text_in_json;
use crate::quantity::Quantity;
use crate::snapshot::moment;

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
#[derive(Debug, Clone, PartialEq)]
pub enum UnmetReason {
    /// A bundle of the placement group has several placement constraints, which Ray cannot place.
    SeveralPlacementConstraints,
    /// Not all pods of the placement group got a Kubernetes node, so they were given up.
    TriedAgain {
        /// The time at which it is tried again, in seconds since 1970.
        at: f64,
    },
    /// The same, and it is time to try it again, but another placement group is tried first.
    TriedInTurn,
    /// It asks for resources of a placement group, which no growth and no new node adds to.
    PlacementGroup {
        /// The id of the placement group.
        id: String,
        /// Whether a node has them, so that the placement group is placed and has no room left.
        is_placed: bool,
    },
    /// All of the demand is placed, or nothing of it.
    AllAtOnce,
    /// The nodes of a group do not take it.
    Group {
        /// The name of the group.
        group: String,
        /// The reason why they do not.
        why: Shortfall,
    },
    /// So many more groups do not take it either.
    MoreGroups(usize),
    /// More demands cannot be met than reasons are given for.
    NotSaid,
}

/// The reason why a group's nodes do not take a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Shortfall {
    /// The request asks for other labels.
    Labels {
        /// Whether the group has any.
        has_any: bool,
    },
    /// A node has less of a resource than the request needs.
    TooSmall {
        /// The name of the resource.
        resource: String,
        /// The amount that a node has, in Ray's unit.
        has: f64,
        /// The amount that the request needs, in Ray's unit.
        needed: f64,
        /// The reason why new nodes count at their base size, if they do.
        at_base: Option<CountedAtBase>,
        /// The devices that Ray does not count, with the remedy.
        uncounted: Option<Box<Uncounted>>,
    },
    /// The group is the head group, of which there is one node.
    OneHead,
    /// The group has as many replicas as it may have.
    Group(GroupLimit),
    /// The cluster has as many workers as it may have.
    MaxWorkers(u64),
    /// Every node is full, and the cluster has as many as it may have.
    Full,
}

/// Devices of pods that Ray does not count as the resource that is asked for, unless the group says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncounted {
    /// The devices, as the container lists them.
    pub devices: String,
    /// The change to make to the group, in words.
    pub remedy: String,
}

/// The reason why new nodes of a group count at their base size, and not at their resize limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CountedAtBase {
    /// Others could not grow.
    GrowthBackoff {
        /// The end of the back-off, in seconds since 1970.
        until: f64,
    },
    /// One that starts is on a Kubernetes node without room to grow.
    FullNode {
        /// The end of the back-off, in seconds since 1970.
        until: f64,
    },
    /// The scheduler has had no room for others for long.
    Unschedulable,
}

/// The reason why a group cannot get more nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupLimit {
    /// It has as many nodes as its `maxReplicas` allows.
    MaxReplicas(i64),
}

impl fmt::Display for UnmetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralPlacementConstraints => {
                f.write_str("a bundle has more than one placement constraint")
            }
            Self::TriedAgain { at } => write!(
                f,
                "Kubernetes has no room for all of its pods at once, so they were given up; it is \
                 tried again at {}",
                moment(*at)
            ),
            // No time, because nobody knows when the other one is done: the text is sent to Ray
            // whenever it changes.
            Self::TriedInTurn => f.write_str(
                "Kubernetes has no room for all of its pods at once, so they were given up; it is \
                 tried again after another placement group, which is tried now",
            ),
            Self::PlacementGroup { id, is_placed } => match is_placed {
                false => write!(
                    f,
                    "it waits for placement group {id}, which is not placed yet"
                ),
                true => write!(f, "it waits for room in placement group {id}"),
            },
            Self::AllAtOnce => f.write_str("all of it must fit at once"),
            Self::Group { group, why } => write!(f, "group {group}: {why}"),
            Self::MoreGroups(count) => write!(f, "and {count} more groups"),
            Self::NotSaid => f.write_str(
                "so much demand waits that reasons are given for the first demands only",
            ),
        }
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Labels { has_any: true } => f.write_str("its labels do not match"),
            Self::Labels { has_any: false } => f.write_str(
                "it has no labels: write those that its nodes have under labels of the group",
            ),
            Self::TooSmall {
                resource,
                has,
                needed,
                at_base,
                uncounted,
            } => {
                let (has, needed) = (amount_text(resource, *has), amount_text(resource, *needed));
                write!(f, "a node has {resource} {has}, {needed} is needed")?;
                if let Some(uncounted) = uncounted {
                    let Uncounted { devices, remedy } = &**uncounted;
                    write!(f, " (its pods have {devices}: {remedy})")?;
                }
                match at_base {
                    None => Ok(()),
                    // The text names a moment and not the seconds until it, because the text is
                    // sent to Ray whenever it changes.
                    Some(CountedAtBase::GrowthBackoff { until }) => write!(
                        f,
                        " (new ones could not grow; they count at their first size until {})",
                        moment(*until)
                    ),
                    Some(CountedAtBase::FullNode { until }) => write!(
                        f,
                        " (the Kubernetes node of one that starts has no room to grow; new ones count at \
                         their first size until {})",
                        moment(*until)
                    ),
                    Some(CountedAtBase::Unschedulable) => f.write_str(
                        " (pods of it find no Kubernetes node; until they do, new ones count at \
                         their first size)",
                    ),
                }
            }
            Self::OneHead => f.write_str("there is one head"),
            Self::Group(limit) => limit.fmt(f),
            Self::MaxWorkers(most) => {
                write!(f, "the cluster has the {most} workers that it may have")
            }
            Self::Full => f.write_str("its nodes are full, and the cluster is at its maximum"),
        }
    }
}

impl fmt::Display for GroupLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::MaxReplicas(most) = self;
        write!(f, "at maxReplicas {most}")
    }
}

/// An amount of a resource in words, for people.
#[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
pub(crate) fn amount_text(name: &str, amount: f64) -> String {
    let bytes = name == "memory" || name == "object_store_memory";
    if bytes && amount.fract() == 0.0 {
        Quantity::from_units(amount as i64).display_memory()
    } else {
        amount.to_string()
    }
}

text_in_json!(UnmetReason, GroupLimit);
