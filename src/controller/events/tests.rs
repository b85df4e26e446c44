use std::time::Duration;

use rayfit_core::reconcile::events::event::EventType;
use tokio::time::advance;

use crate::controller::events::outbox::{Outbox, QueuedEvent, WARNINGS};
use crate::controller::events::*;
use crate::controller::observe::Key;

const SECOND: Duration = Duration::from_secs(1);

fn announcement(namespace: &str, name: &str, reason: &'static str, message: &str) -> QueuedEvent {
    QueuedEvent {
        about: About {
            key: Key::new(namespace, name).unwrap(),
            uid: "u".to_owned(),
        },
        event: ClusterEvent {
            reason,
            kind: if reason == "ScaledUp" {
                EventType::Normal
            } else {
                EventType::Warning
            },
            message: message.to_owned(),
            action: "Scaling",
            pod: None,
        },
    }
}

fn taken(outbox: &mut Outbox) -> Vec<QueuedEvent> {
    std::iter::from_fn(|| outbox.waiting.pop()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_keeps_to_its_budget_and_what_is_left_out_is_summed_up() {
    let mut outbox = Outbox::default();
    for number in 0..1000 {
        let reason = if number % 2 == 0 {
            "Problem"
        } else {
            "CannotFit"
        };
        let message = format!("number {number}");
        outbox.put(announcement("a", "ray", reason, &message));
    }
    let (burst, every) = WARNINGS;
    assert_eq!(taken(&mut outbox).len(), burst as usize);
    assert_eq!(outbox.left_out, 1000 - u64::from(burst));
    advance(every.saturating_sub(SECOND)).await;
    outbox.tick();
    assert!(taken(&mut outbox).is_empty(), "there is no room yet");
    advance(SECOND).await;
    outbox.tick();
    let [summary] = &taken(&mut outbox)[..] else {
        panic!("one Event for all that were left out");
    };
    assert_eq!(summary.event.reason, "EventsLeftOut");
    for part in ["488 x CannotFit", "487 x Problem", "number 999"] {
        assert!(
            summary.event.message.contains(part),
            "{}",
            summary.event.message
        );
    }
    advance(every * 1000).await;
    outbox.tick();
    assert!(taken(&mut outbox).is_empty(), "told once");
}

/// A cluster that creates and deletes pods all day has many Events, and its warnings still come
/// through.
#[tokio::test(start_paused = true)]
async fn what_is_as_it_should_be_keeps_out_no_warning() {
    let mut outbox = Outbox::default();
    for _ in 0..600 {
        outbox.put(announcement("a", "ray", "ScaledUp", "x"));
        taken(&mut outbox);
        advance(SECOND).await;
    }
    // The token of this moment goes to the sum of what was left out.
    outbox.tick();
    assert!(!outbox.put(announcement("a", "ray", "ScaledUp", "x")));
    taken(&mut outbox);
    assert!(outbox.put(announcement("a", "ray", "CannotFit", "x")));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_on_has_one_event_each_half_minute() {
    let mut outbox = Outbox::default();
    let mut published = 0;
    for _ in 0..3600 {
        for _ in 0..12 {
            outbox.put(announcement("a", "ray", "CannotFit", "x"));
        }
        published += taken(&mut outbox).len();
        advance(SECOND).await;
    }
    assert!((100..=145).contains(&published), "{published} in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_made_anew_has_no_new_budget() {
    let mut outbox = Outbox::default();
    let mut published = 0;
    for number in 0..100 {
        let mut again = announcement("a", "ray", "CannotFit", "x");
        again.about.uid = number.to_string();
        outbox.put(again);
        published += taken(&mut outbox).len();
    }
    assert!(published <= 25, "{published}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_clusters_of_one_namespace_keep_out_nobody() {
    let mut outbox = Outbox::default();
    for number in 0..1000 {
        let name = format!("ray-{number}");
        for _ in 0..30 {
            outbox.put(announcement("attacker", &name, "CannotFit", "x"));
        }
    }
    assert!(outbox.put(announcement("victim", "ray", "ScaledUp", "x")));
    let turn = taken(&mut outbox);
    let victims = turn
        .iter()
        .position(|event| &**event.about.key.namespace == "victim");
    assert!(victims.is_some_and(|turn| turn <= 1), "{victims:?}");
    assert!(turn.len() <= 65, "{}", turn.len());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_namespaces_keep_out_nobody() {
    let mut outbox = Outbox::default();
    for number in 0..1000 {
        for _ in 0..30 {
            let namespace = format!("attacker-{number}");
            outbox.put(announcement(&namespace, "ray", "CannotFit", "x"));
        }
    }
    assert!(outbox.put(announcement("victim", "ray", "ScaledUp", "x")));
    let waiting = taken(&mut outbox);
    assert!(waiting.len() <= 1024, "{}", waiting.len());
    assert!(
        waiting
            .iter()
            .any(|event| &**event.about.key.namespace == "victim")
    );
}

#[tokio::test(start_paused = true)]
async fn clusters_that_are_quiet_are_forgotten() {
    let mut outbox = Outbox::default();
    outbox.put(announcement("a", "ray", "ScaledUp", "x"));
    advance(SECOND).await;
    outbox.tick();
    let budgets = |outbox: &Outbox| outbox.normal.len() + outbox.warnings.len();
    assert_eq!(budgets(&outbox), 1, "it is remembered");
    taken(&mut outbox);
    advance(SECOND * 30).await;
    outbox.tick();
    assert_eq!(budgets(&outbox), 0);
}
