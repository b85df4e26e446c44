//! The event recorder: the Events on the RayCluster that Kubernetes' users see.
//!
//! An action is announced once, when it was taken. A condition (a demand that cannot be met, a
//! resize that waits) is announced when it begins, and not again while it holds or shortly after it
//! held. `done` and `conditions` put the texts together, of what plans and effects say of themselves:
//! the texts of reasons and causes are in the planner's `outcome`, those of failures in `effects`. `standby` has those about who scales the cluster.
//!
//! Two kinds of Events are made elsewhere: that a cluster cannot be observed, in
//! [`outage`](crate::reconcile::observed::outage), and that Events were left out, where they are published.
//!
//! In: a round and its results. Out: the Events that are new. Invariant: one condition is announced once while it lasts,
//! and its number of Events is bounded.

pub(crate) mod conditions;
pub(crate) mod done;
pub(crate) mod standby;

use std::collections::BTreeMap;

use crate::reconcile::effects::done::Done;
use crate::reconcile::events::driver_log::Message;
use crate::reconcile::events::event::{Announcements, ClusterEvent, ConditionKey};
use crate::reconcile::round::Round;

/// The most Events of one round; further ones are merged into them.
const MOST: usize = 12;

/// The most bytes of a message: the API server takes 1024.
const LONGEST: usize = 1000;

/// For how many seconds a condition has to be gone until it is announced again.
const AGAIN_S: f64 = 600.0;

/// The most conditions that are remembered as announced.
const KEPT: usize = 1024;

/// Remembers what was announced.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EventRecorder {
    /// When each announced condition was last seen, in seconds since 1970.
    announced: BTreeMap<ConditionKey, f64>,
    /// The CPUs and GPUs that drivers were last informed of.
    totals: Option<(f64, f64)>,
    /// The sizes that pods had before their resizes.
    pub(crate) from: BTreeMap<String, String>,
}

impl EventRecorder {
    /// What is to be announced of a round and of the results of its effects.
    pub(crate) fn announce(&mut self, round: &Round, done: &[Done], now: f64) -> Announcements {
        let mut announcements = done::announcements(round, done, &mut self.from);
        for condition in &round.conditions {
            if self
                .announced
                .insert(condition.topic.clone(), now)
                .is_none()
            {
                announcements.events.push(condition.event.clone());
                announcements.messages.extend(condition.message.clone());
            }
        }
        for condition in done::failures(done) {
            if self.announced.insert(condition.topic, now).is_none() {
                announcements.events.push(condition.event);
            }
        }
        announcements.messages.extend(self.resized(round));
        self.announced.retain(|_, seen| now - *seen < AGAIN_S);
        let seen = round.totals.is_some();
        // A round that could not observe the cluster does not know which pods are gone.
        self.from.retain(|pod, _| !seen || round.pods.contains(pod));
        while self.announced.len() > KEPT {
            self.announced.pop_first();
        }
        announcements.events = summed_up(std::mem::take(&mut announcements.events));
        announcements
    }

    /// A message for drivers when the size of the cluster has changed.
    fn resized(&mut self, round: &Round) -> Option<Message> {
        let totals = round.totals?;
        let before = self.totals.replace(totals)?;
        (before != totals).then(|| Message::resized(totals))
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
    let most = MOST / by_reason.len().max(1);
    by_reason
        .into_iter()
        .flat_map(|(_, same)| sum_up(same, most.max(1)))
        .collect()
}

fn sum_up(mut events: Vec<ClusterEvent>, most: usize) -> Vec<ClusterEvent> {
    if events.len() > most {
        let rest = events.split_off(most - 1);
        if let Some(first) = rest.first() {
            let messages: Vec<&str> = rest.iter().map(|event| event.message.as_str()).collect();
            events.push(ClusterEvent {
                message: messages.join("; "),
                pod: None,
                ..first.clone()
            });
        }
    }
    for each in &mut events {
        shorten(&mut each.message);
    }
    events
}

fn shorten(message: &mut String) {
    if message.len() > LONGEST {
        let end = message.floor_char_boundary(LONGEST);
        message.truncate(end);
        message.push_str(" ...");
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{ProblemPlace, ProblemReason};
    use crate::reconcile::events::event::TrackedCondition;
    use crate::reconcile::recorder::*;

    fn condition(key: &str) -> TrackedCondition {
        TrackedCondition {
            topic: ConditionKey::Problem {
                at: ProblemPlace::Pod(key.to_owned()),
                reason: ProblemReason::StatusUnsaid.identity(),
            },
            event: ClusterEvent::warning("CannotFit", "Scaling", key.to_owned()),
            message: None,
        }
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
