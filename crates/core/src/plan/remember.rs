//! The history that one round leaves for the next.

use std::collections::BTreeSet;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::nodes::node::{Fate, NodeLife, PlannedNode, RayInPod, Stage};
use crate::plan::nodes::preference::RECOVERY_S;
use crate::plan::outcome::plan::Plan;
use crate::snapshot::history::{History, Instance, InstanceStatus};

/// Seconds after which a launch without a Ray node has failed. (Ray gives up a launch without a
/// pod after this time, `request_status_timeout_s`, and one with a pod only after an hour.)
const LAUNCH_TIMEOUT_S: f64 = 600.0;

/// Returns the history after a plan, with the place of each pod in the list if Ray decides alone (`all_pods`).
pub(crate) fn history(decided: &Decided<'_>, plan: &Plan, all_pods: bool) -> History {
    let (previous, now) = (decided.situation.history(), decided.situation.now);
    let instances = instances(decided, plan, all_pods);
    let mut unavailable = previous.unavailable.clone();
    for (group, at) in failures(decided, &instances) {
        let last = unavailable.entry(group.to_owned()).or_insert(at);
        // Failures come in the order of pods and launches, and not of time.
        *last = last.max(at);
    }
    let running = decided.state.count(|node| node.stage() == Stage::Running);
    let runs = |group: &str| {
        let number = decided.config.number(group);
        number.is_some_and(|number| running[number] > 0)
    };
    // A failure is forgotten with its group, and once a node of the group runs and the failure has
    // ceased to count for the choice between groups.
    unavailable.retain(|group, at| {
        let counts = !runs(group) || now - *at < RECOVERY_S;
        counts && decided.config.number(group).is_some()
    });
    History {
        instances,
        // Groups come and go under any name: what is not forgotten with them would add up.
        launch_limits: (previous.launch_limits.iter())
            .filter(|(group, _)| decided.config.number(group).is_some())
            .map(|(group, cap)| (group.clone(), *cap))
            .collect(),
        unavailable,
        unneeded_since: decided.state.unneeded_since.clone(),
        ..History::default()
    }
}

/// The launches that have no pod yet, and the pods whose Ray node was asked to stop; with `all_pods` all of them, in the
/// order of Ray's table.
fn instances(decided: &Decided<'_>, plan: &Plan, all_pods: bool) -> Vec<Instance> {
    let (previous, now) = (decided.situation.history(), decided.situation.now);
    let drained: BTreeSet<&str> = plan.drains.iter().map(|drain| drain.pod.as_str()).collect();
    let mut launches = decided.state.groups.map(|_| 0);
    for plan in &plan.groups {
        if let Some(number) = decided.config.number(&plan.name) {
            launches[number] = plan.launch_now;
        }
    }
    let mut rows: Vec<&PlannedNode> = decided.state.in_order().collect();
    // In the order in which they came, and not in that of packing: by it Ray launches what waits.
    rows.sort_by_key(|node| node.born);
    let mut instances = Vec::new();
    for node in rows {
        let mut note = |status, since, count| {
            let instance = Instance {
                group: decided.state.group_name(node).to_owned(),
                pod: node.pod().map(str::to_owned),
                status,
                since,
                count,
            };
            add(&mut instances, instance);
        };
        match (&node.life, node.fate) {
            (NodeLife::Existing { pod, ray, .. }, _) => match ray {
                RayInPod::Running { .. } if drained.contains(&**pod) => {
                    note(InstanceStatus::StopRequested, Some(now), 1);
                }
                RayInPod::Stopping { since } => note(InstanceStatus::StopRequested, *since, 1),
                // Ray's table keeps the place that a pod has had since it was asked for, and of
                // several that are equally good, or equally idle, the first one is taken.
                RayInPod::Running { .. } | RayInPod::Absent if all_pods => {
                    note(InstanceStatus::Allocated, None, 1);
                }
                RayInPod::Running { .. } | RayInPod::Absent => {}
            },
            (NodeLife::Requested { since }, Fate::Stay) => {
                note(InstanceStatus::Requested, since.or(Some(now)), node.count);
            }
            (NodeLife::Queued, Fate::Stay) | (NodeLife::New, Fate::Launch)
                // A plan that waits asks KubeRay for nothing, and the next round decides on these
                // anew.
                if plan.waiting.is_none() =>
            {
                let launches = node.group().map(|group| &mut launches[group]);
                let requested = launches.map_or(0, |launches| {
                    let requested = node.count.min(*launches);
                    *launches -= requested;
                    requested
                });
                note(InstanceStatus::Requested, Some(now), requested);
                note(InstanceStatus::Queued, Some(now), node.count - requested);
            }
            _ => {}
        }
    }
    instances.extend(stopping(previous, decided));
    instances
}

/// The remembered pods whose Ray node was asked to stop, and that are still there.
///
/// They no longer count as nodes. The next GCS may never have heard of the Ray node, and the container of a raylet that
/// was drained goes on until somebody deletes the pod, because such a raylet ends without an error. (Ray, `scripts.py`,
/// `start`.)
fn stopping(previous: &History, decided: &Decided<'_>) -> Vec<Instance> {
    // Of a cluster at rest nothing is remembered, and its pods need not be gone through.
    if previous.instances.is_empty() {
        return Vec::new();
    }
    let pods = (decided.leftovers.stopped.iter()).chain(&decided.leftovers.draining);
    let pods: HashSet<&str> = pods.map(|pod| pod.name).collect();
    let stops = previous.instances.iter().filter(|instance| {
        let pod = instance.pod.as_deref();
        instance.status == InstanceStatus::StopRequested
            && pod.is_some_and(|pod| pods.contains(pod))
    });
    stops.cloned().collect()
}

/// Adds an instance. Equal launches, one after the other, become one entry.
fn add(instances: &mut Vec<Instance>, instance: Instance) {
    if instance.count == 0 {
        return;
    }
    let alike = |last: &&mut Instance| {
        last.pod.is_none()
            && instance.pod.is_none()
            && last.group == instance.group
            && last.status == instance.status
            && last.since == instance.since
    };
    match instances.last_mut().filter(alike) {
        Some(last) => last.count = last.count.saturating_add(instance.count),
        None => instances.push(instance),
    }
}

/// True for a failed launch, by the time at which it was asked for.
pub(crate) fn is_overdue(since: f64, now: f64) -> bool {
    now - since >= LAUNCH_TIMEOUT_S
}

/// The groups of launches that have failed, with the times of the failures. In such a launch no pod
/// appeared, or Ray does not run in the pod.
fn failures<'a>(
    decided: &'a Decided<'_>,
    instances: &'a [Instance],
) -> impl Iterator<Item = (&'a str, f64)> {
    let nodes = decided.state.in_order();
    let waiting: HashSet<&str> = nodes
        .filter(|node| node.stage() == Stage::Allocated && !node.head)
        .filter_map(PlannedNode::pod)
        .collect();
    let pods = decided.situation.own_pods.iter();
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
        .filter(|(_, since)| is_overdue(*since, decided.situation.now))
        .map(|(group, since)| (group, since + LAUNCH_TIMEOUT_S))
}
