//! The reasons why nodes count at their base size, with their texts.

use crate::snapshot::moment;

/// The reason why new nodes of a group count at their base size, and not at their resize limits.
#[derive(Debug, Clone, Copy, PartialEq, derive_more::Display)]
pub enum CountedAtBase {
    /// Others could not grow.
    #[display("new ones could not grow; they count at their first size until {}", moment(*until))]
    GrowthBackoff {
        /// The end of the back-off, in seconds since 1970.
        until: f64,
    },
    /// One that starts is on a Kubernetes node without room to grow.
    #[display(
        "the Kubernetes node of one that starts has no room to grow; new ones count at \
         their first size until {}",
        moment(*until)
    )]
    FullNode {
        /// The end of the back-off, in seconds since 1970.
        until: f64,
    },
    /// The scheduler has had no room for others for long.
    #[display(
        "pods of it find no Kubernetes node; until they do, new ones count at their first size"
    )]
    Unschedulable,
}
