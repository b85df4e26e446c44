//! The role of a node in standby.

use crate::plan::list::StandbyIndex;

/// The role of a node in standby.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum StandbyRole {
    /// Nothing.
    #[default]
    None,
    /// It has room that is kept ready for that.
    Needed(StandbyIndex),
    /// It is launched for that alone.
    Launched(StandbyIndex),
    /// It was needed until then, in seconds since 1970.
    Released(f64),
}

impl StandbyRole {
    /// The standby demand that needs the node.
    pub(crate) fn needed_for(self) -> Option<StandbyIndex> {
        match self {
            Self::Needed(standby) | Self::Launched(standby) => Some(standby),
            Self::None | Self::Released(_) => None,
        }
    }

    /// The time since which it has not been needed any more, in seconds since 1970.
    pub(crate) fn released_at(self) -> Option<f64> {
        match self {
            Self::Released(at) => Some(at),
            Self::None | Self::Needed(_) | Self::Launched(_) => None,
        }
    }
}

/// The reason why a node is kept though it has been idle for long enough to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum KeptReason {
    /// It is kept ready for that.
    Standby(StandbyIndex),
    /// It was needed on standby until then, in seconds since 1970.
    Released(f64),
    /// A slice keeps it, for a reason in its own words.
    For(&'static str),
}
