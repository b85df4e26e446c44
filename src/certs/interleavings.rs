//! Plays any interleaving of replicas, with crashes, pauses of any length, and a Secret that
//! vanishes.

use std::time::Duration;

use proptest::prelude::*;

use super::simulation::{DAY, SimulatedCerts, newest};

#[derive(Debug, Clone)]
enum Event {
    Act(usize),
    ActAlone(usize, usize),
    Pass(Duration),
    Crash(usize),
    ReplacePod(usize),
    WipeSecret,
    EditConfiguration(usize),
}

fn handle(world: &mut SimulatedCerts, event: &Event) {
    match event {
        Event::Act(replica) => world.act(*replica),
        Event::ActAlone(replica, times) => world.act_alone(*replica, *times),
        Event::Pass(time) => world.uptime += *time,
        Event::Crash(replica) => world.crash(*replica),
        Event::ReplacePod(replica) => world.replace_pod(*replica),
        Event::WipeSecret => world.wipe_secret(),
        Event::EditConfiguration(which) => world.edit_configuration(*which),
    }
}

fn event(replicas: usize) -> impl Strategy<Value = Event> {
    prop_oneof![
        60 => (0..replicas).prop_map(Event::Act),
        10 => (0..replicas, 1..150_usize).prop_map(|(who, times)| Event::ActAlone(who, times)),
        10 => (0..90_u64).prop_map(|seconds| Event::Pass(Duration::from_secs(seconds))),
        2 => (1..400_u32).prop_map(|days| Event::Pass(days * DAY)),
        1 => (0..replicas).prop_map(Event::Crash),
        1 => (0..replicas).prop_map(Event::ReplacePod),
        1 => Just(Event::WipeSecret),
        1 => (0..2_usize).prop_map(Event::EditConfiguration),
    ]
}

fn history() -> impl Strategy<Value = (usize, Vec<Event>)> {
    (1..4_usize).prop_flat_map(|replicas| {
        (
            Just(replicas),
            prop::collection::vec(event(replicas), 0..600),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_interleaving_opens_a_gap((replicas, events) in history()) {
        let mut world = SimulatedCerts::new(replicas);
        for event in &events {
            handle(&mut world, event);
            world.assert_no_gap();
        }
        world.run_fairly(250);
        world.assert_settled();
    }
}

#[test]
fn the_first_start_does_not_wait() {
    let mut world = SimulatedCerts::new(2);
    for _ in 0..40 {
        (0..2).for_each(|replica| world.act(replica));
    }
    assert_eq!(world.uptime, Duration::ZERO);
    assert!(
        world
            .replicas
            .iter()
            .all(|replica| replica.serving.is_some())
    );
}

#[test]
fn an_authority_is_replaced_in_good_time_and_leaves() {
    let mut world = SimulatedCerts::new(3);
    world.run_fairly(200);
    world.assert_settled();
    let first = world.secret.1.current.clone();
    for _ in 0..40 {
        world.uptime += 90 * DAY;
        world.run_fairly(200);
        world.assert_settled();
    }
    assert_ne!(world.secret.1.current, first);
}

/// A bundle changes as the leaf falls due. The renewal has to wait until API servers have the
/// bundle, and a replica that rested meanwhile would not be told of that moment.
#[test]
fn nobody_rests_while_a_renewal_is_only_kept_back() {
    let mut world = SimulatedCerts::new(2);
    world.run_fairly(200);
    world.assert_settled();
    let before = world.secret.1.leaf.clone();
    world.end_rounds();
    world.uptime += 300 * DAY;
    world.edit_configuration(0);
    world.run_fairly(200);
    world.assert_settled();
    assert_ne!(world.secret.1.leaf, before);
}

#[test]
fn a_pod_that_does_not_answer_keeps_its_authority_trusted() {
    let mut world = SimulatedCerts::new(2);
    world.run_fairly(200);
    let trusted = newest(&world.configurations["mutating"]).anchors[0]
        .id
        .clone();
    world.wipe_secret();
    for _ in 0..2_000 {
        world.act(0);
        world.uptime += Duration::from_secs(5);
        world.assert_no_gap();
    }
    let anchors = &newest(&world.configurations["mutating"]).anchors;
    assert!(anchors.iter().any(|anchor| anchor.id == trusted));
    assert_eq!(anchors.len(), 2);
    world.run_fairly(200);
    world.assert_settled();
}
