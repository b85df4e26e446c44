//! The strategies, as they are named on the command line.

use crate::plan::Strategy;

/// A strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Way {
    /// Ray's packing with Rayfit's improvements
    Rayfit,
    /// Exactly as Ray 2.60.0's autoscaler v2
    Ray,
}

impl Way {
    /// The strategy itself.
    pub(in crate::cli) fn strategy(self) -> Strategy {
        match self {
            Self::Rayfit => Strategy::Rayfit,
            Self::Ray => Strategy::Ray,
        }
    }
}
