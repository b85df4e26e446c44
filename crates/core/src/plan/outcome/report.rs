//! The report: where each demand went, and why nodes and groups were not used or not grown.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::remark::NodeRemark;
use crate::plan::outcome::step::PlacementStep;
use crate::plan::outcome::unmet::DemandKind;
pub use crate::ray::resource::CpuAndMemory;
use crate::snapshot::is_default;
use crate::text::first_of;

/// The reasons why the plan is as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// Every demand, in the order in which the demands were served.
    pub demands: Vec<DemandReport>,
    /// Standby demand: headroom, and the minima of schedules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby: Vec<StandbyReport>,
    /// Every group, the head first.
    pub groups: Vec<GroupReport>,
    /// Nodes that are not grown or that are removed, with the reason. Nodes of one group with the
    /// same reason are one entry.
    pub nodes: Vec<NodeReport>,
}

/// The placement of the units of one demand.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemandReport {
    /// The kind of the demand.
    pub kind: DemandKind,
    /// The position of the demand in the list of its kind, in Ray's report.
    pub index: usize,
    /// The demand in words, for people.
    pub demand: String,
    /// The number of units of the demand.
    pub count: u64,
    /// The places of the units.
    pub placed: Vec<Placed>,
    /// The number of units that could not be placed.
    pub unmet: u64,
}

/// The placement of one standby demand.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandbyReport {
    /// The standby demand with its reason, in words, for people.
    pub demand: String,
    /// The number of requests to have room for, or of nodes to have.
    pub count: u64,
    /// The places of these.
    pub placed: Vec<Placed>,
    /// The number of these that there is no room for.
    pub unmet: u64,
}

/// Units of a demand that were placed in the same step on nodes of the same group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display)]
#[serde(rename_all = "camelCase")]
#[display("{count} on {step} (nodes of {group}: {nodes})")]
pub struct Placed {
    /// The step of packing.
    pub step: PlacementStep,
    /// The name of the group.
    pub group: String,
    /// The number of units placed.
    pub count: u64,
    /// The number of nodes on which they were placed.
    pub nodes: u64,
}

/// The state of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupReport {
    /// The name of the group.
    pub name: String,
    /// The number of running nodes.
    pub running: u64,
    /// The number of pending nodes.
    pub pending: u64,
    /// The number of terminating pods, which stand for no node any more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminating: u64,
    /// The number of new nodes needed.
    pub launch: u64,
    /// The number of nodes to remove.
    pub remove: u64,
    /// The most nodes that the group may have.
    pub max: u64,
    /// The reason why the group cannot get more nodes; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The part of their resize limits that running pods which were resized before do not take now;
    /// absent if that is nothing. Ray's autoscaler would leave these pods at their limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_limits: Option<CpuAndMemory>,
    /// The sizes of its pods; absent if none of them has a Kubernetes node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<GroupSizes>,
}

/// The sum of the sizes of a group's pods that have a Kubernetes node, for the container in which
/// Ray runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupSizes {
    /// Their limits as Kubernetes has given them, or requests where there are none.
    pub has: CpuAndMemory,
    /// The part of that which is in use: the amounts that work has asked Ray for, or of memory the
    /// amount really in use, where that is more and Ray reports it. No pod counts with more than it
    /// has.
    pub in_use: CpuAndMemory,
    /// The size that they would have at their resize limits; the same as `has` if they cannot grow.
    pub up_to: CpuAndMemory,
}

impl GroupSizes {
    /// The sums of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            has: self.has.join(other.has, i64::saturating_add),
            in_use: self.in_use.join(other.in_use, i64::saturating_add),
            up_to: self.up_to.join(other.up_to, i64::saturating_add),
        }
    }
}

/// Nodes of one group for which the same reason holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display)]
#[serde(rename_all = "camelCase")]
#[display("{}: {reason}", first_of(pods, *count))]
pub struct NodeReport {
    /// The name of the group.
    pub group: String,
    /// The names of the first three pods at the most; `count` says how many there are.
    pub pods: Vec<String>,
    /// The number of nodes.
    pub count: u64,
    /// The reason why the nodes are not grown, or why they are removed.
    pub reason: NodeRemark,
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let demands = self.demands.iter();
        let demands = demands.map(|one| (&one.demand, one.count, &one.placed, one.unmet));
        let standby = self.standby.iter();
        let standby = standby.map(|one| (&one.demand, one.count, &one.placed, one.unmet));
        for (demand, count, placed, unmet) in demands.chain(standby) {
            writeln!(f, "  {count} x {demand}")?;
            for placed in placed {
                writeln!(f, "    {placed}")?;
            }
            if unmet > 0 {
                writeln!(f, "    {unmet} not met")?;
            }
        }
        for group in &self.groups {
            write!(
                f,
                "  group {}: {} running, {} pending, {} new, {} to be removed, at most {}",
                group.name, group.running, group.pending, group.launch, group.remove, group.max
            )?;
            if group.terminating > 0 {
                write!(f, "; {} terminating", group.terminating)?;
            }
            if let Some(limit) = &group.limit {
                write!(f, "; {limit}")?;
            }
            if let Some(below) = group.below_limits {
                write!(f, "; {below} below their resize limits")?;
            }
            writeln!(f)?;
        }
        for node in &self.nodes {
            writeln!(f, "  {node}")?;
        }
        Ok(())
    }
}
