//! The strategies: Ray's own decisions, and those by which Rayfit decides better. `docs/planner.md` lists in what, and
//! [`pipeline`](crate::plan::pipeline) has the slices in their order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules by which the planner decides.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum Strategy {
    /// Decides with Ray's packing and the improvements on it.
    #[default]
    Rayfit,
    /// Decides exactly as Ray 2.60.0's autoscaler v2.
    Ray,
}

impl Strategy {
    /// True where the improvements on Ray hold.
    pub fn is_rayfit(self) -> bool {
        self == Self::Rayfit
    }
}
