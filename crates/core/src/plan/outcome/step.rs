//! The steps of packing.

use schemars::JsonSchema;
use serde::Serialize;

/// The step of packing in which a demand was placed, in the order in which the steps are tried.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, thiserror::Error,
)]
#[serde(rename_all = "camelCase")]
pub enum PlacementStep {
    /// Resources that are free on a running node.
    #[error("free resources")]
    Free,
    /// Resources that a resize in progress will give a running node.
    #[error("a resize in progress")]
    InFlight,
    /// Resources that a running pod gets by growing now.
    #[error("growing pods")]
    Grow,
    /// Room into which a running pod could grow, and for which nothing is asked now.
    #[error("room to grow in place, which costs nothing")]
    RoomToGrow,
    /// A pending node, which was launched earlier and in which Ray does not run yet.
    #[error("pending nodes")]
    Pending,
    /// A new node, which is launched now.
    #[error("new nodes")]
    Launch,
}
