//! The steps of packing.

use derive_more::Display;
use schemars::JsonSchema;
use serde::Serialize;

/// The step of packing in which a demand was placed, in the order in which the steps are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Display)]
#[serde(rename_all = "camelCase")]
pub enum PlacementStep {
    /// Resources that are free on a running node.
    #[display("free resources")]
    Free,
    /// Resources that a resize in progress will give a running node.
    #[display("a resize in progress")]
    InFlight,
    /// Resources that a running pod gets by growing now.
    #[display("growing pods")]
    Grow,
    /// Room into which a running pod could grow, and for which nothing is asked now.
    #[display("room to grow in place, which costs nothing")]
    RoomToGrow,
    /// A pending node, which was launched earlier and in which Ray does not run yet.
    #[display("pending nodes")]
    Pending,
    /// A new node, which is launched now.
    #[display("new nodes")]
    Launch,
}
