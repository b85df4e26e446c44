//! When to look at a cluster again, if nothing happens before.

use super::settings::Pace;

/// Seconds until the next look. `last_change` and `now` are in seconds since 1970.
pub fn next_s(busy: bool, last_change: f64, now: f64, pace: &Pace) -> f64 {
    let _ = (last_change, now);
    if busy { pace.busy_s } else { pace.calm_s }
}
