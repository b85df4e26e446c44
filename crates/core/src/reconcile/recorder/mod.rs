//! The event recorder: the Events on the RayCluster that Kubernetes' users see.
//!
//! An action is announced once, when it was taken. A condition (a demand that cannot be met, a
//! resize that waits) is announced when it begins, and not again while it holds or shortly after it
//! held. `done` and `conditions` put the texts together, of what plans and effects say of themselves:
//! the texts of reasons and causes are in the planner's `outcome`, those of failures in `effects`.
//!
//! Two kinds of Events are made elsewhere: that a cluster cannot be observed, in
//! [`outage`](crate::reconcile::observed::outage), and that Events were left out, where they are published.
//!
//! In: a round and its results. Out: the Events that are new. Invariant: one condition is announced once while it lasts,
//! and its number of Events is bounded.

pub(crate) mod conditions;
pub(crate) mod done;

use std::collections::BTreeMap;

use crate::reconcile::effects::chain::Done;
use crate::reconcile::events::driver_log::Message;
use crate::reconcile::events::event::{
    Announcements, ClusterEvent, ConditionKey, TrackedCondition,
};
use crate::reconcile::round::Round;

/// The most Events of one round; further ones are merged into them.
const MOST: usize = 12;

/// The most bytes of a message.
// The API server takes 1024.
const LONGEST: usize = 1000;

/// Seconds for which a condition has to be gone until it is announced again.
const AGAIN_S: f64 = 600.0;

/// The most conditions that are remembered as announced. A further one is announced once there is room for it.
// One for each pod of the largest clusters.
const KEPT: usize = 16_384;

/// Remembers what was announced.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EventRecorder {
    /// The time at which each announced condition was last seen, in seconds since 1970.
    announced: BTreeMap<ConditionKey, f64>,
    /// The CPUs and GPUs that drivers were last informed of.
    totals: Option<(f64, f64)>,
    /// The sizes that pods had before their resizes.
    pub(crate) from: BTreeMap<String, String>,
}

impl EventRecorder {
    /// The announcements of a round and of the results of its effects.
    pub(crate) fn announce(&mut self, round: &Round, done: &[Done], now: f64) -> Announcements {
        let mut announcements = done::announcements(round, done, &mut self.from);
        let failures: Vec<TrackedCondition> = done::failures(done).collect();
        let holding = round.conditions.iter().chain(&failures);
        for condition in self.begun(holding, now) {
            announcements.events.push(condition.event.clone());
            announcements.messages.extend(condition.message.clone());
        }
        if let Some(totals) = round.totals {
            let previous = self.totals.replace(totals);
            let has_changed = previous.is_some_and(|previous| previous != totals);
            let resized = has_changed.then(|| Message::resized(totals));
            announcements.messages.extend(resized);
        }
        let is_observed = round.totals.is_some();
        // A round that could not observe the cluster does not know which pods are gone.
        self.from
            .retain(|pod, _| !is_observed || round.pods.contains(pod));
        announcements.events = summed_up(std::mem::take(&mut announcements.events));
        announcements
    }

    /// The conditions to announce, of those that hold.
    fn begun<'a>(
        &mut self,
        holding: impl Iterator<Item = &'a TrackedCondition>,
        now: f64,
    ) -> Vec<&'a TrackedCondition> {
        let mut new = Vec::new();
        for condition in holding {
            match self.announced.get_mut(&condition.topic) {
                Some(last_seen) => *last_seen = now,
                None => new.push(condition),
            }
        }
        // A condition that is gone counts as gone from now on if the clock has been set back: it
        // would not be announced again until the clock is where it was.
        self.announced.retain(|_, last_seen| {
            *last_seen = last_seen.min(now);
            now - *last_seen < AGAIN_S
        });
        // Conditions that have been gone for longest are forgotten to make room. A condition that holds is not, or it would be
        // announced again in each round.
        let excess = (self.announced.len().saturating_add(new.len())).saturating_sub(KEPT);
        if excess > 0 {
            let mut stale: Vec<(f64, ConditionKey)> = (self.announced.iter())
                .filter(|(_, last_seen)| last_seen.total_cmp(&now).is_ne())
                .map(|(topic, last_seen)| (*last_seen, topic.clone()))
                .collect();
            stale.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            for (_, topic) in stale.into_iter().take(excess) {
                self.announced.remove(&topic);
            }
        }
        new.retain(|condition| {
            let has_room = self.announced.len() < KEPT;
            has_room && (self.announced.insert(condition.topic.clone(), now)).is_none()
        });
        new
    }
}

/// Merges Events of the same reason where there are too many.
fn summed_up(events: Vec<ClusterEvent>) -> Vec<ClusterEvent> {
    let mut by_reason: Vec<(&'static str, Vec<ClusterEvent>)> = Vec::new();
    for each in events {
        match by_reason
            .iter_mut()
            .find(|(reason, _)| *reason == each.reason)
        {
            Some((_, same)) => same.push(each),
            None => by_reason.push((each.reason, vec![each])),
        }
    }
    // Each reason gets the same share: a hundred resizes must not crowd out the one Event of
    // another kind.
    let most = (MOST / by_reason.len().max(1)).max(1);
    let mut events: Vec<ClusterEvent> = Vec::new();
    for (_, mut same) in by_reason {
        if same.len() > most {
            let rest = same.split_off(most - 1);
            let messages: Vec<&str> = rest.iter().map(|event| event.message.as_str()).collect();
            same.extend(rest.first().map(|first| ClusterEvent {
                message: messages.join("; "),
                pod: None,
                ..first.clone()
            }));
        }
        events.extend(same);
    }
    for ClusterEvent { message, .. } in &mut events {
        if message.len() > LONGEST {
            message.truncate(message.floor_char_boundary(LONGEST));
            message.push_str(" ...");
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use crate::plan::{ProblemPlace, ProblemReason};
    use crate::reconcile::events::event::TrackedCondition;
    use crate::reconcile::recorder::*;

    fn condition(key: &str) -> TrackedCondition {
        let topic = ConditionKey::Problem {
            at: ProblemPlace::Pod(key.to_owned()),
            reason: ProblemReason::StatusUnsaid.identity(),
        };
        let event = ClusterEvent::warning("CannotFit", "Scaling", key.to_owned());
        TrackedCondition::new(topic, event)
    }

    fn round(keys: &[&str]) -> Round {
        Round {
            conditions: keys.iter().map(|key| condition(key)).collect(),
            ..Round::default()
        }
    }

    #[test]
    fn a_condition_is_announced_when_it_begins() {
        let mut recorder = EventRecorder::default();
        let mut announced =
            |keys: &[&str], now| recorder.announce(&round(keys), &[], now).events.len();
        assert_eq!(announced(&["a"], 0.0), 1);
        assert_eq!(announced(&["a"], 500.0), 0, "it still holds");
        assert_eq!(announced(&["a", "b"], 501.0), 1);
        assert_eq!(announced(&[], 502.0), 0);
        assert_eq!(announced(&["a"], 1000.0), 0, "it flaps");
        assert_eq!(announced(&[], 1601.0), 0);
        assert_eq!(announced(&["a"], 1602.0), 1, "it came back after long");
    }

    #[test]
    fn what_comes_back_is_announced_although_the_clock_was_set_back() {
        let mut recorder = EventRecorder::default();
        let mut announced =
            |keys: &[&str], now| recorder.announce(&round(keys), &[], now).events.len();
        assert_eq!(announced(&["a"], 90_000.0), 1);
        assert_eq!(announced(&[], 1000.0), 0);
        assert_eq!(announced(&[], 1601.0), 0);
        assert_eq!(announced(&["a"], 1602.0), 1, "it came back after long");
    }

    #[test]
    fn of_too_many_those_that_hold_are_announced_once() {
        let key = |number: usize| format!("{number:05}");
        let keys: Vec<String> = (0..KEPT + 76).map(key).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut recorder = EventRecorder::default();
        // The first in order were there before, and are the first to be forgotten.
        recorder.announce(&round(&["00-a", "00-b"]), &[], 0.0);
        let mut announced = |keys: &[&str], now| {
            let events = recorder.announce(&round(keys), &[], now).events;
            assert!(recorder.announced.len() <= KEPT);
            events.len()
        };
        assert_eq!(announced(&keys, 1.0), MOST);
        for now in [2.0, 3.0] {
            assert_eq!(announced(&keys, now), 0, "all of them still hold");
        }
        assert_eq!(
            announced(&keys[100..], 4.0),
            MOST,
            "what had no room is announced where others are gone"
        );
        assert_eq!(announced(&keys[100..], 5.0), 0);
    }

    #[test]
    fn many_of_a_kind_are_summed_up() {
        let keys: Vec<String> = (0..500)
            .map(|key| format!("{key}: {}", "x".repeat(50)))
            .collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let announcements = EventRecorder::default().announce(&round(&keys), &[], 0.0);
        assert!(
            announcements.events.len() <= MOST,
            "{}",
            announcements.events.len()
        );
        assert!(
            announcements
                .events
                .iter()
                .all(|event| event.message.len() <= 1024)
        );
    }
}
