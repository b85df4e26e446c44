//! Groups whose pods recently failed to appear are the second choice among equals.
//! (Ray, `cloud_resource_monitor.py`.)

use std::collections::BTreeMap;

use super::candidates::Preference;
use super::group::GroupConfig;

/// How long a failure counts, in seconds.
const RECOVERY_S: f64 = 600.0;

/// For so long after a failure a group counts as unavailable, in seconds.
const SAFETY_FLOOR_S: f64 = 10.0;

/// How each group stands.
pub(crate) fn preferences(
    groups: &[GroupConfig],
    unavailable: &BTreeMap<String, f64>,
    now: f64,
) -> Vec<Preference> {
    let newest = unavailable
        .values()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let of = |group: &GroupConfig| match unavailable.get(&group.name) {
        None => Preference {
            recoverable: 1.0,
            priority: group.priority,
            available: 1.0,
        },
        Some(at) => Preference {
            recoverable: recovered(now - at),
            priority: group.priority,
            available: 1.0 - at / newest,
        },
    };
    groups.iter().map(of).collect()
}

fn recovered(age: f64) -> f64 {
    if age < SAFETY_FLOOR_S {
        0.0
    } else {
        (age / RECOVERY_S).min(1.0)
    }
}
