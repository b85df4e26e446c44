//! What Ray is told about its scaling: `ray status`, the dashboard, and the text that drivers
//! print when they connect.

use std::collections::{BTreeMap, HashSet};

use super::backoff::Waits;
use super::failed_launches;
use super::round::Skipped;
use crate::plan::{DemandKind, Plan};
use crate::snapshot::Snapshot;
use crate::snapshot::autoscaling_state::{AutoscalingState, PendingInstance, PendingRequest};
use crate::snapshot::gcs::ResourceRequest;
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::pod::{Pod, PodRole};

/// Most units of one demand that are reported as infeasible; Ray only shows how many there are.
const UNITS: u64 = 100;

/// Most lines of the error text.
const LINES: usize = 20;

/// The report of a round. `version` is the time in milliseconds since 1970, so that it grows over
/// restarts of the scaler too.
pub fn state(snapshot: &Snapshot, plan: &Plan, waits: &Waits, version: i64) -> AutoscalingState {
    let gcs = &snapshot.gcs;
    let unmet = |kind| plan.unmet.iter().filter(move |unmet| unmet.kind == kind);
    let mut infeasible: Vec<ResourceRequest> = Vec::new();
    for unmet in unmet(DemandKind::Tasks) {
        if let Some(request) = gcs.pending_resource_requests.get(unmet.index) {
            let units = usize::try_from(unmet.count.min(UNITS)).unwrap_or(0);
            infeasible.extend(std::iter::repeat_n(request.request.clone(), units));
        }
    }
    let gangs = &gcs.pending_gang_resource_requests;
    let constraints = &gcs.cluster_resource_constraints;
    AutoscalingState {
        version,
        pending_requests: pending_requests(plan),
        pending_instances: pending_instances(snapshot),
        failed_requests: failed_launches::requests(snapshot, plan, waits),
        infeasible_requests: infeasible,
        infeasible_gangs: unmet(DemandKind::PlacementGroup)
            .filter_map(|unmet| gangs.get(unmet.index).cloned())
            .collect(),
        infeasible_constraints: unmet(DemandKind::Constraint)
            .filter_map(|unmet| constraints.get(unmet.index).cloned())
            .collect(),
    }
}

/// Launches without a pod, those of one group and one moment together.
fn pending_requests(plan: &Plan) -> Vec<PendingRequest> {
    let mut pending: BTreeMap<(&str, i64), i32> = BTreeMap::new();
    for instance in &plan.remember.instances {
        let waits = matches!(
            instance.status,
            InstanceStatus::Requested | InstanceStatus::Queued
        );
        if instance.pod.is_none() && waits {
            let since = whole(instance.since.unwrap_or_default());
            *pending.entry((&instance.group, since)).or_default() += 1;
        }
    }
    let request = |((group, since), count): ((&str, i64), i32)| PendingRequest {
        group: group.to_owned(),
        count,
        since,
    };
    pending.into_iter().map(request).collect()
}

/// Worker pods in which Ray does not run yet.
pub(super) fn pending_pods(snapshot: &Snapshot) -> impl Iterator<Item = Pod<'_>> {
    let nodes = &snapshot.gcs.node_states;
    let known: HashSet<&str> = nodes.iter().map(|node| node.instance_id.as_str()).collect();
    let pending = move |pod: &Pod<'_>| {
        pod.role == PodRole::Worker && !pod.deleting && !pod.ended && !known.contains(pod.name)
    };
    snapshot.pods.iter().filter(pending)
}

fn pending_instances(snapshot: &Snapshot) -> Vec<PendingInstance> {
    let instance = |pod: Pod<'_>| PendingInstance {
        group: pod.group.to_owned(),
        pod: pod.name.to_owned(),
        address: pod.address().unwrap_or_default().to_owned(),
        details: waits_for(&pod),
    };
    pending_pods(snapshot).map(instance).collect()
}

/// What a pod waits for: a node, an image, Ray.
pub(super) fn waits_for(pod: &Pod<'_>) -> String {
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

/// What is wrong, for people, in a few lines; empty when nothing is. Nothing in it changes as
/// long as the same is wrong.
pub fn error_text(plan: &Plan, skipped: &[Skipped]) -> String {
    let problems = plan.problems.iter();
    let mut lines: Vec<String> = problems
        .map(|problem| format!("{}: {}; {}", problem.at, problem.reason, problem.effect))
        .collect();
    lines.extend(plan.unmet.iter().map(|unmet| {
        let reasons = unmet.reasons.join("; ");
        format!(
            "{} x {} cannot be placed: {reasons}",
            unmet.count, unmet.demand
        )
    }));
    let lasting = skipped.iter().filter(|skipped| skipped.lasting);
    lines.extend(lasting.map(|skipped| format!("{}: {}", skipped.about, skipped.why)));
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES);
        lines.push(format!("and {more} more"));
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("Rayfit:\n  {}", lines.join("\n  "))
}

#[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
pub(super) fn whole(seconds: f64) -> i64 {
    seconds as i64
}
