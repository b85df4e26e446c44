//! Where a demand went.

use schemars::JsonSchema;
use serde::Serialize;

/// Where a demand went, in the order in which it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlacementStep {
    /// Room that is free on a running node.
    Free,
    /// Room that a resize in flight will give.
    InFlight,
    /// Room that a running pod gets by growing now.
    Grow,
    /// A node on its way.
    Pending,
    /// A new node.
    Launch,
}
