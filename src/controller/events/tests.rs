use crate::controller::events::announcement::Announcement;
use crate::controller::events::outbox::{Outbox, WARNINGS};
use crate::controller::events::*;
use crate::controller::observe::Key;
use crate::reconcile::events::event::EventType;

fn announcement(namespace: &str, name: &str, reason: &'static str, message: &str) -> Announcement {
    Announcement {
        about: About {
            key: Key::new(namespace, name),
            uid: "u".to_owned(),
        },
        news: ClusterEvent {
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

fn taken(outbox: &mut Outbox) -> Vec<Announcement> {
    std::iter::from_fn(|| outbox.take()).collect()
}

#[test]
fn a_cluster_keeps_to_its_budget_and_what_is_left_out_is_summed_up() {
    let mut outbox = Outbox::default();
    for number in 0..1000 {
        let reason = if number % 2 == 0 {
            "Problem"
        } else {
            "CannotFit"
        };
        let message = format!("number {number}");
        outbox.put(announcement("a", "ray", reason, &message), 0.0);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let burst = WARNINGS.burst as usize;
    assert_eq!(taken(&mut outbox).len(), burst);
    assert_eq!(outbox.count_left_out(), 1000 - burst as u64);
    outbox.tick(WARNINGS.every_s - 1.0);
    assert!(taken(&mut outbox).is_empty(), "there is no room yet");
    outbox.tick(WARNINGS.every_s);
    let [summary] = &taken(&mut outbox)[..] else {
        panic!("one Event for all that were left out");
    };
    assert_eq!(summary.news.reason, "EventsLeftOut");
    for part in ["488 x CannotFit", "487 x Problem", "number 999"] {
        assert!(
            summary.news.message.contains(part),
            "{}",
            summary.news.message
        );
    }
    outbox.tick(1e6);
    assert!(taken(&mut outbox).is_empty(), "told once");
}

/// A cluster that creates and deletes pods all day has many Events, and its warnings still come
/// through.
#[test]
fn what_is_as_it_should_be_keeps_out_no_warning() {
    let mut outbox = Outbox::default();
    for second in 0..600 {
        outbox.put(announcement("a", "ray", "ScaledUp", "x"), f64::from(second));
        taken(&mut outbox);
    }
    assert!(!outbox.put(announcement("a", "ray", "ScaledUp", "x"), 600.0));
    taken(&mut outbox);
    assert!(outbox.put(announcement("a", "ray", "CannotFit", "x"), 600.0));
}

#[test]
fn a_cluster_that_goes_on_has_one_event_each_half_minute() {
    let mut outbox = Outbox::default();
    let mut published = 0;
    for second in 0..3600_u32 {
        for _ in 0..12 {
            outbox.put(
                announcement("a", "ray", "CannotFit", "x"),
                f64::from(second),
            );
        }
        published += taken(&mut outbox).len();
    }
    assert!((100..=145).contains(&published), "{published} in an hour");
}

#[test]
fn a_cluster_that_is_made_anew_has_no_new_budget() {
    let mut outbox = Outbox::default();
    let mut published = 0;
    for number in 0..100 {
        let mut again = announcement("a", "ray", "CannotFit", "x");
        again.about.uid = number.to_string();
        outbox.put(again, 0.0);
        published += taken(&mut outbox).len();
    }
    assert!(published <= 25, "{published}");
}

#[test]
fn a_thousand_clusters_of_one_namespace_keep_out_nobody() {
    let mut outbox = Outbox::default();
    for number in 0..1000 {
        let name = format!("ray-{number}");
        for _ in 0..30 {
            outbox.put(announcement("attacker", &name, "CannotFit", "x"), 0.0);
        }
    }
    assert!(outbox.put(announcement("victim", "ray", "ScaledUp", "x"), 0.0));
    let turn = taken(&mut outbox);
    let victims = turn
        .iter()
        .position(|event| &*event.about.key.namespace == "victim");
    assert!(victims.is_some_and(|turn| turn <= 1), "{victims:?}");
    assert!(turn.len() <= 65, "{}", turn.len());
}

#[test]
fn a_thousand_namespaces_keep_out_nobody() {
    let mut outbox = Outbox::default();
    for number in 0..1000 {
        for _ in 0..30 {
            let namespace = format!("attacker-{number}");
            outbox.put(announcement(&namespace, "ray", "CannotFit", "x"), 0.0);
        }
    }
    assert!(outbox.put(announcement("victim", "ray", "ScaledUp", "x"), 0.0));
    let waiting = taken(&mut outbox);
    assert!(waiting.len() <= 1024, "{}", waiting.len());
    assert!(
        waiting
            .iter()
            .any(|event| &*event.about.key.namespace == "victim")
    );
}

#[test]
fn clusters_that_are_quiet_are_forgotten() {
    let mut outbox = Outbox::default();
    outbox.put(announcement("a", "ray", "ScaledUp", "x"), 0.0);
    outbox.tick(1.0);
    assert!(format!("{outbox:?}").contains("bucket"), "it is remembered");
    taken(&mut outbox);
    outbox.tick(31.0);
    assert!(!format!("{outbox:?}").contains("bucket"), "{outbox:?}");
}
