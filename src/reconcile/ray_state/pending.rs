//! Pods in which Ray does not run yet.

use std::collections::HashSet;

use crate::snapshot::Snapshot;
use crate::snapshot::pod::{Pod, PodRole};

/// Worker pods in which Ray does not run yet.
pub(crate) fn pending_pods(snapshot: &Snapshot) -> impl Iterator<Item = Pod<'_>> {
    let nodes = &snapshot.gcs.node_states;
    let known: HashSet<&str> = nodes.iter().map(|node| node.instance_id.as_str()).collect();
    let pending = move |pod: &Pod<'_>| {
        pod.role == PodRole::Worker && !pod.deleting && !pod.ended && !known.contains(pod.name)
    };
    snapshot.pods.iter().filter(pending)
}

/// The reason why a pod waits: for a Kubernetes node, an image, or the start of Ray.
pub(crate) fn waits_for(pod: &Pod<'_>) -> String {
    let scheduled = pod.condition("PodScheduled");
    if let Some(condition) = scheduled.filter(|condition| condition.status == "False") {
        let message = condition.message.as_deref().unwrap_or("no node holds it");
        return format!("waits for a node: {message}");
    }
    let mut statuses = pod.container_statuses().iter();
    let waiting = statuses.find_map(|status| status.state.waiting.as_ref()?.reason.as_deref());
    match waiting {
        Some(reason) => format!("its container waits: {reason}"),
        None => "waits for Ray to start in it".to_owned(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
pub(crate) fn whole(seconds: f64) -> i64 {
    seconds as i64
}
