//! Activity: whether anything goes on in a cluster.

use std::cell::LazyCell;
use std::collections::HashSet;

use crate::plan::{DemandKind, Plan, PlanWait, ResizeNote};
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{NodeState, NodeStatus};
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::pod::{Pod, PodRole};

/// Detects an action that is planned or under way, and waiting demand that can still be met.
pub(crate) fn is_busy(snapshot: &Snapshot, plan: &Plan) -> bool {
    // A plan that was given up because it cost too many steps would be given up again: counting the
    // cluster as busy would only repeat it at once.
    let gcs = &snapshot.gcs;
    let waiting = gcs.pending_resource_requests.len() + gcs.pending_gang_resource_requests.len();
    // The GCS lists constraints apart: they are not among the demand that waits.
    let unmet = (plan.unmet.iter()).filter(|unmet| unmet.kind != DemandKind::Constraint);
    let is_served = waiting > unmet.count();
    let goes_on = !plan.is_quiet() || is_served || is_moving(snapshot, plan);
    goes_on && plan.waiting != Some(PlanWait::GivenUp)
}

/// Detects pods that are being created or deleted, and resizes under way.
fn is_moving(snapshot: &Snapshot, plan: &Plan) -> bool {
    let nodes = &snapshot.gcs.node_states;
    let alive: HashSet<&str> = nodes
        .iter()
        .filter(|node| node.is_running() || node.status == NodeStatus::Draining)
        .map(|node| node.instance_id.as_str())
        .collect();
    let moving = |pod: &Pod<'_>| {
        let note = ResizeNote::of(pod).ok().flatten().unwrap_or_default();
        let absent = pod.role != PodRole::Other && !alive.contains(pod.name);
        pod.deleting || note.resizing_at.is_some() || absent
    };
    // Of most clusters, nobody asks.
    let draining = LazyCell::new(|| -> HashSet<&str> {
        let draining = |node: &&NodeState| node.status == NodeStatus::Draining;
        let draining = nodes.iter().filter(draining);
        draining.map(|node| node.instance_id.as_str()).collect()
    });
    let mut pods = snapshot.pods.iter();
    let mut instances = plan.remember.instances.iter();
    instances.any(|instance| match instance.status {
        InstanceStatus::Queued | InstanceStatus::Requested => true,
        // A pod that is there is remembered for its place alone.
        InstanceStatus::Allocated => false,
        // A draining node may need long for the rest of its work.
        InstanceStatus::StopRequested => {
            let pod = instance.pod.as_deref();
            pod.is_none_or(|pod| !draining.contains(pod))
        }
    }) || pods.any(|pod| !pod.ended && moving(&pod))
}

/// The total CPUs and GPUs of all running Ray nodes.
pub(crate) fn totals(snapshot: &Snapshot) -> (f64, f64) {
    let nodes = snapshot.gcs.node_states.iter();
    let total = |name: &str| {
        let running = nodes.clone().filter(|node| node.is_running());
        running
            .filter_map(|node| node.total_resources.get(name))
            .sum::<f64>()
    };
    (total("CPU"), total("GPU"))
}
