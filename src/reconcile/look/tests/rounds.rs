//! Each step from the answer of the GCS to what is remembered.

use std::sync::Arc;

use serde_json::json;

use super::support::{
    NOW, asking, budgeted, cluster, conflict, decided, deciding, idle, keep, limit, observed, pods,
    snapshot,
};
use crate::reconcile::effects::done::Done;
use crate::reconcile::look::{LookEnd, LookReason, LookStep, RoundStep, SeenObjects};
use crate::reconcile::{Round, RoundSettings};

#[test]
fn a_round_is_spared_only_while_objects_limits_and_answers_stay() {
    let mut state = idle();
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    let asking = keep(&mut state, step, &Arc::default());
    let RoundStep::Compare(comparing) = asking.answered(&mut state, (), NOW) else {
        panic!("it is compared");
    };
    let RoundStep::Rest(rest) = comparing.same(&mut state, true, NOW + 5.0) else {
        panic!("it is the same");
    };
    assert_eq!(
        (rest.end, rest.why),
        (LookEnd::Paced { busy: true }, LookReason::Unchanged)
    );
    assert!(state.memory.changed_at > NOW && state.is_idle());

    let mut other = state.clone();
    let step = LookStep::begin(&mut other, SeenObjects::Same);
    let asking = keep(&mut other, step, &limit(3));
    let step = asking.answered(&mut other, (), NOW);
    assert!(matches!(step, RoundStep::Observe(_)), "other limits");

    let step = LookStep::begin(&mut state, SeenObjects::Same);
    let asking = keep(&mut state, step, &Arc::default());
    let RoundStep::Compare(comparing) = asking.answered(&mut state, (), NOW) else {
        panic!("it is compared");
    };
    let step = comparing.differs(&mut state);
    assert!(matches!(step, RoundStep::Observe(_)) && !state.is_idle());
}

#[test]
fn effects_are_performed_and_after_a_stale_one_the_cluster_is_read() {
    let (mut state, asking) = asking(RoundSettings::default(), &Arc::default());
    let step = observed(&mut state, asking, snapshot(2));
    let RoundStep::Perform(performing, of) = decided(&mut state, step) else {
        panic!("pods are launched");
    };
    assert_eq!(of.pods.len(), 1);
    let chain = &performing.chains()[0];
    let late = conflict();
    let done = Done {
        about: chain.about.clone(),
        effect: chain.next().unwrap(),
        result: Err(late),
    };
    let RoundStep::ReadCluster(rereading) = performing.performed::<()>(vec![done]) else {
        panic!("it is read");
    };
    let RoundStep::Finish(finishing) = rereading.read::<()>() else {
        panic!("it is remembered");
    };
    assert_eq!(finishing.done().len(), 1);
    let finished = finishing.finish(&mut state, NOW, || 0.5);
    assert!(finished.idle.is_none() && !state.is_idle());
    assert_eq!(finished.rest.why, LookReason::RoundMade);
}

/// Asks for what the plan takes; what the second decision says is carried out.
#[test]
fn a_round_is_made_again_where_a_budget_grants_more() {
    let launches = |round: &Round| -> u64 {
        let groups = round.plan.groups.iter();
        groups.map(|group| group.launch_now).sum()
    };
    for (granted, again) in [(5, true), (0, false)] {
        let (mut state, asking) = asking(budgeted(), &limit(0));
        let mut step = observed(&mut state, asking, snapshot(2));
        if let RoundStep::ReadObjects(reading) = step {
            let (cluster, pods) = (cluster("central"), pods(&cluster("central")));
            step = reading.read(&mut state, Some((&cluster, &pods)), NOW);
        }
        let first = deciding(step);
        let round = first.round(&state);
        assert_eq!(launches(&round), 0, "nothing is granted");
        let RoundStep::KeepBudgets(asking) = first.decided::<()>(&mut state, round, NOW) else {
            panic!("more is asked for");
        };
        let step = asking.kept::<()>(&mut state, limit(granted));
        if !again {
            assert!(!matches!(step, RoundStep::Decide(_)), "{step:?}");
            continue;
        }
        let second = deciding(step);
        let round = second.round(&state);
        assert_eq!(launches(&round), 2);
        let step = second.decided::<()>(&mut state, round, NOW);
        assert!(matches!(step, RoundStep::Perform(..)), "{step:?}");
    }
}

#[test]
fn objects_that_are_older_than_what_is_stored_are_read_again_at_the_next_look() {
    let (mut state, first) = asking(budgeted(), &limit(1));
    let RoundStep::ReadObjects(reading) = observed(&mut state, first, snapshot(0)) else {
        panic!("what the owner before did is not known");
    };
    let (mut newer, pods) = (cluster("central"), pods(&cluster("central")));
    newer["metadata"]["generation"] = json!(2);
    let _ = deciding(reading.read(&mut state, Some((&newer, &pods)), NOW));
    assert!(state.memory.needs_read(&pods, NOW), "the snapshot is older");

    let (mut state, second) = asking(budgeted(), &limit(1));
    let RoundStep::ReadObjects(reading) = observed(&mut state, second, snapshot(0)) else {
        panic!("it is read");
    };
    let stored = cluster("central");
    let _ = deciding(reading.read(&mut state, Some((&stored, &pods)), NOW));
    assert!(!state.memory.needs_read(&pods, NOW));
}
