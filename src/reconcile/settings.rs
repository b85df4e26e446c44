//! What can be tuned, in one place, with the values that hold where nobody says otherwise.

use crate::plan;

/// How a cluster is scaled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// How to decide: the strategy and the planner's own switches.
    pub plan: plan::Settings,
    /// When to look again.
    pub pace: Pace,
    /// How long to leave alone what failed.
    pub backoff: Backoff,
}

/// Times between two looks at a cluster, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// While something is pending or on its way.
    pub busy_s: f64,
    /// Otherwise.
    pub calm_s: f64,
    /// At the most, where nothing has changed for long.
    pub idle_s: f64,
    /// For how long nothing must have changed until looks get rarer.
    pub long_s: f64,
}

/// Waits after failures, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// After the first failure; it doubles with each further one.
    pub first_s: f64,
    /// At the most.
    pub longest_s: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            busy_s: 0.25,
            calm_s: 1.0,
            idle_s: 5.0,
            long_s: 300.0,
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first_s: 0.5,
            longest_s: 120.0,
        }
    }
}
