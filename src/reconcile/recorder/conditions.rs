//! What is told of what holds for a while: demands that cannot be met, faults in the objects,
//! resizes that wait or failed.

use crate::plan::{Plan, Problem, ResizeNote, Unmet};
use crate::reconcile::events::driver_log::Message;
use crate::reconcile::events::event::{News, State, Topic};
use crate::snapshot::Snapshot;
use crate::snapshot::pod::Pod;

/// Most reasons that are given for one demand.
const REASONS: usize = 4;

const RESIZING: &str = "Resizing";

/// Everything that holds and is worth telling.
pub(crate) fn states(snapshot: &Snapshot, plan: &Plan) -> Vec<State> {
    let unmet = plan.unmet.iter().map(unmet);
    let problems = plan.problems.iter().map(problem);
    let mut states: Vec<State> = unmet.chain(problems).collect();
    states.extend(snapshot.pods.iter().filter_map(pending_resize));
    states.extend(failed_resizes(snapshot, plan));
    states
}

fn unmet(unmet: &Unmet) -> State {
    let (count, demand) = (unmet.count, &unmet.demand);
    let reasons: Vec<&str> = unmet
        .reasons
        .iter()
        .take(REASONS)
        .map(String::as_str)
        .collect();
    let message = format!(
        "{count} x {demand} cannot be placed: {}",
        reasons.join("; ")
    );
    State {
        topic: Topic::Unmet {
            kind: unmet.kind,
            demand: demand.clone(),
        },
        news: News::warning("CannotFit", "Scaling", message),
        message: Some(Message::unmet(unmet)),
    }
}

fn problem(problem: &Problem) -> State {
    let Problem { at, reason, effect } = problem;
    State {
        topic: Topic::Problem {
            at: at.clone(),
            reason: reason.clone(),
        },
        news: News::warning("Problem", "Planning", format!("{at}: {reason}; {effect}")),
        message: None,
    }
}

/// What the kubelet says of a resize that it does not carry out.
fn pending_resize(pod: Pod<'_>) -> Option<State> {
    let pending = pod
        .condition("PodResizePending")
        .filter(|one| one.is_true())?;
    let (reason, why) = match pending.reason.as_deref() {
        Some("Infeasible") => ("ResizeInfeasible", "its node can never hold it"),
        _ => ("ResizeDeferred", "its node has no room now"),
    };
    let told = pending.message.as_deref().unwrap_or_default();
    let name = pod.name;
    let message = format!("the resize of pod {name} waits: {why} ({told})");
    Some(State {
        topic: Topic::ResizeWaits {
            pod: name.to_owned(),
            reason,
        },
        news: News::warning(reason, RESIZING, message).on(name),
        message: None,
    })
}

/// Resizes of which it is now noted that they failed.
fn failed_resizes<'a>(snapshot: &'a Snapshot, plan: &'a Plan) -> impl Iterator<Item = State> + 'a {
    plan.notes.iter().filter_map(|planned| {
        let at = planned.note.last_failed_at?;
        let pod = snapshot.pods.find(&planned.pod)?;
        let noted = ResizeNote::of(&pod).ok().flatten().unwrap_or_default();
        if noted.last_failed_at == Some(at) {
            return None;
        }
        let (name, why) = (pod.name, planned.note.last_failed_reason.as_deref());
        let why = why.unwrap_or_default();
        let reason = if why.ends_with("timed out") {
            "ResizeTimedOut"
        } else {
            "ResizeFailed"
        };
        let message = format!("the resize of pod {name} is taken back: {why}");
        Some(State {
            topic: Topic::ResizeFailed {
                pod: name.to_owned(),
                at,
            },
            news: News::warning(reason, RESIZING, message).on(name),
            message: None,
        })
    })
}
