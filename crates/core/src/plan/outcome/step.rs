//! The steps of packing.

use schemars::JsonSchema;
use serde::Serialize;

/// The step of packing in which a demand was placed, in the order in which the steps are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlacementStep {
    /// Resources that are free on a running node.
    Free,
    /// Resources that a resize in progress will give a running node.
    InFlight,
    /// Resources that a running pod gets by growing now.
    Grow,
    /// Room into which a running pod could grow, and for which nothing is asked now.
    RoomToGrow,
    /// A pending node, which was launched earlier and in which Ray does not run yet.
    Pending,
    /// A new node, which is launched now.
    Launch,
}
