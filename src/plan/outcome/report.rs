//! Where each demand went, and why nodes and groups were not used or not grown.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::outcome::plan::DemandKind;
use crate::plan::outcome::step::PlacementStep;

/// Why the plan is as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// Every demand, in the order in which they were served.
    pub demands: Vec<DemandReport>,
    /// Every group, head first.
    pub groups: Vec<GroupReport>,
    /// Nodes on which nothing was placed or which were not grown, with the reason; equal reasons
    /// of one group together.
    pub nodes: Vec<NodeReport>,
}

/// Where a demand went.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemandReport {
    /// What it is of.
    pub kind: DemandKind,
    /// Its position in the list of its kind in Ray's report.
    pub index: usize,
    /// What it is, for people.
    pub demand: String,
    /// How many units of it there are.
    pub count: u64,
    /// Where they went.
    pub placed: Vec<Placed>,
    /// How many could not be placed.
    pub unmet: u64,
}

/// Units that went the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// By which step.
    pub step: PlacementStep,
    /// To which group.
    pub group: String,
    /// How many units.
    pub count: u64,
    /// On how many nodes.
    pub nodes: u64,
}

/// How a group stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Nodes that run.
    pub running: u64,
    /// Nodes on their way.
    pub pending: u64,
    /// New nodes.
    pub launch: u64,
    /// Nodes that go.
    pub remove: u64,
    /// The most that it may have.
    pub max: u64,
    /// Why it does not get more, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// Nodes of which the same is to be said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// The group.
    pub group: String,
    /// The pods; at most three, and how many more there are.
    pub pods: Vec<String>,
    /// How many nodes.
    pub count: u64,
    /// What is to be said.
    pub reason: String,
}

impl PlacementStep {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Free => "free room",
            Self::InFlight => "a resize in flight",
            Self::Grow => "growing pods",
            Self::Pending => "nodes on their way",
            Self::Launch => "new nodes",
        }
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            group,
            count,
            nodes,
        } = self;
        write!(f, "{count} on {} (nodes of {group}: {nodes})", step.words())
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for demand in &self.demands {
            writeln!(f, "  {} x {}", demand.count, demand.demand)?;
            for placed in &demand.placed {
                writeln!(f, "    {placed}")?;
            }
            if demand.unmet > 0 {
                writeln!(f, "    {} not met", demand.unmet)?;
            }
        }
        for group in &self.groups {
            let GroupReport {
                name,
                running,
                pending,
                launch,
                remove,
                max,
                limit,
            } = group;
            write!(
                f,
                "  group {name}: {running} running, {pending} pending, {launch} new, {remove} going, at most {max}"
            )?;
            writeln!(
                f,
                "{}",
                limit
                    .as_ref()
                    .map(|limit| format!("; {limit}"))
                    .unwrap_or_default()
            )?;
        }
        for node in &self.nodes {
            let more = node.count.saturating_sub(node.pods.len() as u64);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            writeln!(f, "  {}{more}: {}", node.pods.join(", "), node.reason)?;
        }
        Ok(())
    }
}
