//! The JSON schemas of what the planner reads and writes, as they are stored in `docs/schema/`.

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::{Value, json};

use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::report::PlanReport;
use crate::snapshot::Snapshot;

/// A line of `rayfit plan -o json`. There is one line for each snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanLine {
    /// The changes to make to the RayCluster.
    pub plan: Plan,
    /// The reasons for the plan, and for what it leaves undone.
    pub report: PlanReport,
    /// The rules that the plan breaks, in words, so that nobody may act on it; empty if it breaks
    /// none.
    pub violations: Vec<String>,
}

/// The schema of a [`Snapshot`].
pub fn snapshot() -> Value {
    json!(schema_for!(Snapshot))
}

/// The schema of a [`PlanLine`].
pub fn line() -> Value {
    json!(schema_for!(PlanLine))
}
