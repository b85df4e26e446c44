//! The preference between groups: one whose pods recently failed to appear is the second choice among equally good ones.
//! (Ray, `cloud_resource_monitor.py`.)

use std::collections::BTreeMap;

use crate::plan::list::ByGroup;
use crate::snapshot::group_spec::GroupSpec;

/// Seconds for which a failure counts.
pub(crate) const RECOVERY_S: f64 = 600.0;

/// Seconds after a failure for which a group counts as unavailable.
const SAFETY_FLOOR_S: f64 = 10.0;

/// The preference between nodes of equal score, by group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preference {
    /// 1 unless the group's pods recently failed to appear.
    pub(crate) recoverable: f64,
    /// The `priority` of the group.
    pub(crate) priority: i64,
    /// 1 unless the group's pods ever failed to appear.
    pub(crate) available: f64,
}

/// Each group's failures and priority, as the choice between equally good nodes uses them.
pub(crate) fn preferences(
    groups: &ByGroup<GroupSpec>,
    unavailable: &BTreeMap<String, f64>,
    now: f64,
) -> ByGroup<Preference> {
    let newest = unavailable
        .values()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    groups.map(|group| {
        let (recoverable, available) = match unavailable.get(&group.name) {
            None => (1.0, 1.0),
            // Ray divides times since 1970, so every group that has failed is close to 0, and the
            // last one is 0.
            Some(at) if now - at < SAFETY_FLOOR_S => (0.0, 1.0 - at / newest),
            Some(at) => (((now - at) / RECOVERY_S).min(1.0), 1.0 - at / newest),
        };
        Preference {
            recoverable,
            priority: group.priority,
            available,
        }
    })
}
