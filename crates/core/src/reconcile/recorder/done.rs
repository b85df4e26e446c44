//! The Events about effects that succeeded or failed.

use std::collections::BTreeMap;

use crate::plan::{RayletSync, RemovalCause};
use crate::reconcile::effects::chain::Done;
use crate::reconcile::effects::effect::{
    ClusterPatch, Drain, DrainKind, Effect, GroupChange, PodPatch, RayletResize, Reply,
};
use crate::reconcile::effects::failure::Meaning;
use crate::reconcile::events::driver_log::Message;
use crate::reconcile::events::event::{
    Announcements, ClusterEvent, ConditionKey, TrackedCondition,
};
use crate::reconcile::round::Round;

const SCALING: &str = "Scaling";
const RESIZING: &str = "Resizing";

/// The Events and messages about effects that succeeded. `from` remembers the sizes that pods had
/// before their resizes.
pub(crate) fn announcements(
    round: &Round,
    done: &[Done],
    from: &mut BTreeMap<String, String>,
) -> Announcements {
    let mut announcements = Announcements::default();
    let mut drained: BTreeMap<(&str, RemovalCause), Vec<&Drain>> = BTreeMap::new();
    for done in done {
        match (&done.effect, &done.result) {
            (Effect::PatchCluster(patch), Ok(_)) => scaled(patch, &mut announcements),
            (Effect::ResizePod(PodPatch { pod, .. }), Ok(_)) => {
                let mut resizes = round.plan.resizes.iter();
                let Some(resize) = resizes.find(|resize| resize.pod == *pod) else {
                    continue;
                };
                let message = format!("resizing pod {pod}: {}", resize.sizes());
                let reason = if resize.is_rollback() {
                    from.remove(pod);
                    "ResizeRolledBack"
                } else {
                    from.insert(pod.clone(), resize.size_now());
                    "Resizing"
                };
                let event = ClusterEvent::normal(reason, RESIZING, message);
                announcements.events.push(event.on(pod));
            }
            // The pod has its new size, and its raylet has been told.
            (Effect::ResizeRaylet(RayletResize { pod, .. }), Ok(_)) => {
                let mut syncs = round.plan.raylet_syncs.iter();
                let Some(size) = syncs.find(|sync| sync.pod == *pod).map(RayletSync::size) else {
                    continue;
                };
                if let Some(old_size) = from.remove(pod).filter(|old_size| *old_size != size) {
                    let message = format!("pod {pod} was resized in place: {old_size} -> {size}");
                    let event = ClusterEvent::normal("Resized", RESIZING, message);
                    announcements.events.push(event.on(pod));
                }
            }
            (Effect::Drain(drain), Ok(Reply::DrainAccepted)) => {
                let same = drained.entry((&drain.group, drain.cause)).or_default();
                same.push(drain);
            }
            _ => {}
        }
    }
    for ((group, cause), drains) in drained {
        let message = Message::removing(drains.len(), group, cause);
        announcements.messages.push(message);
        announcements
            .events
            .extend(drains.iter().map(|drain| draining(drain)));
    }
    announcements
}

/// The Event about a Ray node that drains, or is stopped.
fn draining(drain: &Drain) -> ClusterEvent {
    let Drain { pod, message, .. } = drain;
    let event = if drain.kind == DrainKind::Stop {
        let message = format!("stopping the Ray node of pod {pod}: {message}");
        ClusterEvent::warning("Stopping", SCALING, message)
    } else {
        let message = format!("draining pod {pod}: {message}");
        ClusterEvent::normal("Draining", SCALING, message)
    };
    event.on(pod)
}

fn scaled(patch: &ClusterPatch, announcements: &mut Announcements) {
    let event = |change: &GroupChange| {
        let reason = if change.then > change.now {
            "ScaledUp"
        } else if change.then < change.now || !change.deletions.is_empty() {
            "ScaledDown"
        } else {
            return None;
        };
        Some(ClusterEvent::normal(reason, SCALING, change.line.clone()))
    };
    announcements
        .events
        .extend(patch.changes.iter().filter_map(event));
    let launching = patch.changes.iter().filter(|change| change.launches > 0);
    let adding = launching.map(|change| Message::adding(change.launches, &change.group));
    announcements.messages.extend(adding);
}

/// The conditions of effects that failed, except for races that end by themselves.
pub(crate) fn failures(done: &[Done]) -> impl Iterator<Item = TrackedCondition> {
    done.iter().filter_map(|done| {
        let failure = done.result.as_ref().err()?;
        let meaning = failure.meaning();
        if matches!(meaning, Meaning::Stale | Meaning::Gone) {
            return None;
        }
        let (reason, action) = match (&done.effect, meaning) {
            (_, Meaning::TooLarge(_)) => ("ResizeInfeasible", RESIZING),
            (Effect::ResizePod(_), Meaning::Refused) => ("ResizeRefused", RESIZING),
            (_, Meaning::Forbidden) => ("RightMissing", SCALING),
            // These change nothing but what Ray shows, and each round tries them again.
            (Effect::Report(_) | Effect::PutError(_), _) => return None,
            (effect, _) if effect.is_kubernetes() => ("ApiCallFailed", SCALING),
            _ => ("RayCallFailed", SCALING),
        };
        let topic = ConditionKey::CallFailed {
            about: done.about.clone(),
            effect: done.effect.kind(),
            reason,
        };
        let event = ClusterEvent::warning(reason, action, failure.explain(&done.effect));
        Some(TrackedCondition::new(topic, event))
    })
}
