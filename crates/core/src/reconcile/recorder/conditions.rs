//! The conditions that are worth an Event while they hold: demand that cannot be met, faults in the
//! objects, resizes that wait or have failed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::plan::{ExcessNode, Plan, ResizeNote, Unmet};
use crate::reconcile::events::driver_log::Message;
use crate::reconcile::events::event::{ClusterEvent, ConditionKey, TrackedCondition};
use crate::snapshot::Snapshot;
use crate::snapshot::pod::Pod;

/// The most reasons that are given for one unmet demand.
const REASONS: usize = 4;

/// A node that still drains after so many seconds has work.
// A Ray node without any has ended after two.
const WORKS_S: f64 = 5.0;

/// The most bytes of a demand that are kept as they are.
const LONGEST_KEY: usize = 256;

const RESIZING: &str = "Resizing";

/// All conditions that hold and are worth an Event.
pub(crate) fn conditions(snapshot: &Snapshot, plan: &Plan) -> Vec<TrackedCondition> {
    let mut conditions: Vec<TrackedCondition> = plan.unmet.iter().map(unmet).collect();
    for problem in &plan.problems {
        let topic = ConditionKey::Problem {
            at: problem.at.clone(),
            reason: problem.reason.identity(),
        };
        let event = ClusterEvent::warning("Problem", "Planning", problem.to_string());
        conditions.push(TrackedCondition::new(topic, event));
    }
    let now = snapshot.seconds().unwrap_or_default();
    // Nodes above a maximum that wait for their work.
    let waits = |node: &&ExcessNode| node.since.is_some_and(|since| now - since >= WORKS_S);
    for node in plan.excess.iter().filter(waits) {
        let pod = node.pod.clone();
        let event = ClusterEvent::warning("AboveMaximum", "Scaling", node.to_string()).on(&pod);
        conditions.push(TrackedCondition::new(ConditionKey::Excess { pod }, event));
    }
    for departure in &plan.departures {
        let pod = departure.pod.clone();
        let message = departure.with_time() + "; room for its work is looked for elsewhere";
        let event = ClusterEvent::warning("NodeLeaves", "Scaling", message).on(&pod);
        conditions.push(TrackedCondition::new(ConditionKey::Departs { pod }, event));
    }
    if let Some(end) = &plan.end {
        let event = ClusterEvent::normal("IdleTermination", "Scaling", end.to_string());
        conditions.push(TrackedCondition::new(ConditionKey::Ends, event));
    }
    conditions.extend(snapshot.pods.iter().filter_map(pending_resize));
    conditions.extend(failed_resizes(snapshot, plan));
    conditions
}

fn unmet(unmet: &Unmet) -> TrackedCondition {
    let (count, demand) = (unmet.count, &unmet.demand);
    let message = format!(
        "{count} x {demand} cannot be placed: {}",
        unmet.why(REASONS)
    );
    TrackedCondition {
        topic: ConditionKey::Unmet {
            kind: unmet.kind,
            demand: of_bounded_length(demand),
        },
        event: ClusterEvent::warning("CannotFit", "Scaling", message),
        message: Some(Message::unmet(unmet)),
    }
}

/// A text by which a demand is known again: of a long one its beginning and a hash of all of it.
fn of_bounded_length(demand: &str) -> String {
    // The names in it are a tenant's, and it is remembered for a while after the demand has gone.
    if demand.len() <= LONGEST_KEY {
        return demand.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    demand.hash(&mut hasher);
    let beginning = &demand[..demand.floor_char_boundary(LONGEST_KEY)];
    format!("{beginning} {:016x}", hasher.finish())
}

/// The condition of a pod whose resize the kubelet does not carry out.
fn pending_resize(pod: Pod<'_>) -> Option<TrackedCondition> {
    let pending = pod
        .condition("PodResizePending")
        .filter(|one| one.is_true())?;
    let (reason, why) = match pending.reason.as_deref() {
        Some("Infeasible") => (
            "ResizeInfeasible",
            "its Kubernetes node can never hold the new size",
        ),
        // The kubelet writes `Deferred` for every other reason. (Kubernetes, `kubelet/status`,
        // `SetPodResizePendingCondition`.)
        _ => (
            "ResizeDeferred",
            "its Kubernetes node has too little left for it now",
        ),
    };
    let detail = pending.message.as_deref().unwrap_or_default();
    let name = pod.name;
    let message = format!("the resize of pod {name} waits: {why} ({detail})");
    let topic = ConditionKey::ResizeWaits {
        pod: name.to_owned(),
        reason,
    };
    let event = ClusterEvent::warning(reason, RESIZING, message).on(name);
    Some(TrackedCondition::new(topic, event))
}

/// The conditions of resizes whose failure this round notes for the first time.
fn failed_resizes<'a>(
    snapshot: &'a Snapshot,
    plan: &'a Plan,
) -> impl Iterator<Item = TrackedCondition> + 'a {
    plan.notes.iter().filter_map(|(pod, note)| {
        let at = note.last_failed_at?;
        let pod = snapshot.pods.find(pod)?;
        let noted = ResizeNote::of(&pod).ok().flatten().unwrap_or_default();
        if noted.last_failed_at == Some(at) {
            return None;
        }
        let (name, why) = (pod.name, note.last_failed_reason.as_deref());
        let why = why.unwrap_or_default();
        // Ray's record of a resize has a text only, so a time-out is told by Ray's words for it.
        let reason = if why.ends_with("timed out") {
            "ResizeTimedOut"
        } else {
            "ResizeFailed"
        };
        let message = format!("the resize of pod {name} is taken back: {why}");
        let topic = ConditionKey::ResizeFailed {
            pod: name.to_owned(),
            at,
        };
        let event = ClusterEvent::warning(reason, RESIZING, message).on(name);
        Some(TrackedCondition::new(topic, event))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_demands_are_told_apart_by_few_bytes() {
        assert_eq!(of_bounded_length("{CPU: 1}"), "{CPU: 1}");
        let long = "é".repeat(10_000);
        let one = of_bounded_length(&format!("{long}1"));
        let other = of_bounded_length(&format!("{long}2"));
        assert!(one != other && one.len() < 300, "{one}");
        assert_eq!(one, of_bounded_length(&format!("{long}1")));
    }
}
