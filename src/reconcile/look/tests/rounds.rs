//! Each step from the answer of the GCS to what is remembered.

use super::support::{NOW, asking, asks, conflict, decided, idle, observed, snapshot};
use crate::reconcile::effects::done::Done;
use crate::reconcile::look::{LookEnd, LookReason, LookStep, RoundStep, SeenObjects};

#[test]
fn a_round_is_spared_only_while_objects_and_answers_stay() {
    let mut state = idle();
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    let asking = asks(step);
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

    let step = LookStep::begin(&mut state, SeenObjects::Same);
    let asking = asks(step);
    let RoundStep::Compare(comparing) = asking.answered(&mut state, (), NOW) else {
        panic!("it is compared");
    };
    let step = comparing.differs(&mut state);
    assert!(matches!(step, RoundStep::Observe(_)) && !state.is_idle());
}

#[test]
fn effects_are_performed_and_after_a_stale_one_the_cluster_is_read() {
    let (mut state, asking) = asking();
    let step = observed(&mut state, asking, snapshot(2));
    let RoundStep::Perform(performing, of) = decided(&state, step) else {
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
