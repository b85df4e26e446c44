//! What the planner reads and writes as JSON schemas: `docs/schema/`.

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::{Value, json};

use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::report::PlanReport;
use crate::snapshot::Snapshot;

/// A line of `rayfit plan -o json`: one for each snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanLine {
    /// What is to be done.
    pub plan: Plan,
    /// Why, and why not more.
    pub report: PlanReport,
    /// What forbids to act on the plan, in words; empty if nothing does.
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
