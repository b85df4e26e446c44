//! Availability of groups: a group whose pods recently failed to appear is the second choice among
//! equally good ones. (Ray, `cloud_resource_monitor.py`.)

use std::collections::BTreeMap;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::list::ByGroup;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::Preference;
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::history::{Instance, InstanceStatus};

/// Seconds for which a failure counts.
pub(super) const RECOVERY_S: f64 = 600.0;

/// Seconds after a failure for which a group counts as unavailable.
const SAFETY_FLOOR_S: f64 = 10.0;

/// Seconds after which a launch without a Ray node has failed. (Ray gives up a launch without a
/// pod after this time, `request_status_timeout_s`, and one with a pod only after an hour.)
const LAUNCH_TIMEOUT_S: f64 = 600.0;

/// True for a failed launch, by the time at which it was asked for.
pub(crate) fn is_overdue(since: f64, now: f64) -> bool {
    now - since >= LAUNCH_TIMEOUT_S
}

/// The groups of launches that have failed, with the times of the failures. In such a launch no pod
/// appeared, or Ray does not run in the pod.
pub(crate) fn failures<'a>(
    decided: &'a Decided<'_>,
    instances: &'a [Instance],
) -> impl Iterator<Item = (&'a str, f64)> {
    let nodes = decided.state.in_order();
    let waiting: HashSet<&str> = nodes
        .filter(|node| node.stage() == Stage::Allocated && !node.head)
        .filter_map(PlannedNode::pod)
        .collect();
    let pods = decided.own_pods.iter();
    let pods = pods
        .filter(move |pod| waiting.contains(pod.name) && !pod.ended)
        .filter_map(|pod| Some((pod.group, pod.created()?)));
    let launches = instances.iter().filter_map(|launch| {
        // KubeRay was never asked for what is only queued, so that cannot have failed.
        let was_requested = launch.pod.is_none() && launch.status == InstanceStatus::Requested;
        Some((
            launch.group.as_str(),
            launch.since.filter(|_| was_requested)?,
        ))
    });
    pods.chain(launches)
        .filter(|(_, since)| is_overdue(*since, decided.now))
        .map(|(group, since)| (group, since + LAUNCH_TIMEOUT_S))
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
