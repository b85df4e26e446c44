//! The autoscaling state for `ray status` and the dashboard, and the error text that drivers print
//! when they connect.

use std::collections::BTreeMap;

use crate::plan::{DemandKind, Plan, Problem};
use crate::reconcile::memory::backoff::Waits;
use crate::reconcile::ray_state::failed_launches;
use crate::reconcile::ray_state::failed_launches::{pending_pods, waits_for};
use crate::reconcile::round::Skipped;
use crate::seconds::second_of;
use crate::snapshot::Snapshot;
use crate::snapshot::autoscaling_state::{AutoscalingState, PendingInstance, PendingRequest};
use crate::snapshot::gcs::ResourceRequest;
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::pod::Pod;

/// The most units of one demand that are reported as infeasible.
// Ray's message has an entry for each unit, and Ray only shows their number.
const UNITS: u64 = 100;

/// The most lines of the error text.
const LINES: usize = 20;

/// The autoscaling state after a round, without a version, which each report has anew.
pub fn state(snapshot: &Snapshot, plan: &Plan, waits: &Waits) -> AutoscalingState {
    let gcs = &snapshot.gcs;
    let unmet = |kind| plan.unmet.iter().filter(move |unmet| unmet.kind == kind);
    let mut infeasible: Vec<ResourceRequest> = Vec::new();
    for unmet in unmet(DemandKind::Tasks) {
        if let Some(request) = gcs.pending_resource_requests.get(unmet.index) {
            let units = usize::try_from(unmet.count.min(UNITS)).unwrap_or(0);
            infeasible.extend(std::iter::repeat_n(request.request.clone(), units));
        }
    }
    // Launches that have no pod yet, by worker group and time of the request.
    let mut pending: BTreeMap<(&str, i64), i32> = BTreeMap::new();
    for launch in &plan.remember.instances {
        let status = launch.status;
        let waits = matches!(status, InstanceStatus::Requested | InstanceStatus::Queued);
        if launch.pod.is_none() && waits {
            let since = second_of(launch.since.unwrap_or_default());
            let count = pending.entry((&launch.group, since)).or_default();
            *count = count.saturating_add(i32::try_from(launch.count).unwrap_or(i32::MAX));
        }
    }
    let request = |((group, since), count): ((&str, i64), i32)| PendingRequest {
        group: group.to_owned(),
        count,
        since,
    };
    let instance = |pod: Pod<'_>| PendingInstance {
        group: pod.group.to_owned(),
        pod: pod.name.to_owned(),
        address: pod.address().unwrap_or_default().to_owned(),
        details: waits_for(&pod),
    };
    let gangs = &gcs.pending_gang_resource_requests;
    let constraints = &gcs.cluster_resource_constraints;
    AutoscalingState {
        version: 0,
        pending_requests: pending.into_iter().map(request).collect(),
        pending_instances: pending_pods(snapshot).map(instance).collect(),
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

/// The error text for people, in a few lines; empty when nothing is wrong. The text stays the same
/// as long as the same is wrong.
pub fn error_text(plan: &Plan, skipped: &[Skipped]) -> String {
    // Every new text is a write to the GCS, so nothing that changes by itself is in it.
    let mut lines: Vec<String> = plan.problems.iter().map(Problem::to_string).collect();
    lines.extend(plan.unmet.iter().map(|unmet| {
        let reasons = unmet.why(usize::MAX);
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
