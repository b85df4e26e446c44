//! Each way in which a look ends before anything is decided.

use serde_json::json;

use super::support::{NOW, asking, asks, cluster, conflict, idle, judged, not_owned, rests};
use crate::reconcile::effects::failure::{ApiStatus, Failure};
use crate::reconcile::look::{LookEnd, LookReason, LookState, LookStep, RoundStep, SeenObjects};
use crate::reconcile::ownership::handover::{GRACE_S, RECORD};
use crate::reconcile::{Blind, Handover, Ineligible};

#[test]
fn what_is_not_known_is_waited_for_and_what_is_gone_is_not() {
    let mut state = LookState::default();
    let rest = rests(LookStep::begin(&mut state, SeenObjects::NotListed));
    assert_eq!(rest.end, LookEnd::After(0.1));
    assert_eq!(rest.why, LookReason::NotListed);
    let rest = rests(LookStep::begin(&mut state, SeenObjects::Gone));
    assert_eq!(
        (rest.end, rest.why),
        (LookEnd::UntilChanged, LookReason::Gone)
    );
}

#[test]
fn objects_are_judged_again_until_they_show_that_the_cluster_is_owned() {
    let mut state = LookState::default();
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    assert!(matches!(step, LookStep::Judge(_)), "never judged");
    let (mut state, _) = asking();
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    assert!(matches!(step, LookStep::Ask(_)));
    // Another one owns it now.
    let changed = cluster("sidecar/x");
    let step = not_owned(judged(&mut state, &mut Handover::default(), &changed, 0.0));
    assert!(matches!(step, LookStep::WriteRecord(_)), "{step:?}");
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    assert!(matches!(step, LookStep::Judge(_)), "no longer owned");
}

#[test]
fn a_record_is_claimed_waited_for_and_read_again_after_a_conflict() {
    let claim = |result| {
        let (mut state, mut handover) = (LookState::default(), Handover::default());
        let of = judged(&mut state, &mut handover, &cluster("nobody"), 0.0);
        match not_owned(of) {
            LookStep::WriteRecord(writing) => {
                assert!(writing.is_claim());
                writing.wrote(&mut state, result)
            }
            step => panic!("{step:?}"),
        }
    };
    let rest = rests(claim(Ok(())));
    assert_eq!(rest.end, LookEnd::After(0.0));
    assert_eq!(rest.why, LookReason::RecordWritten { is_claim: true });

    let conflict = conflict();
    let LookStep::ReadCluster(rereading) = claim(Err(conflict.clone())) else {
        panic!("it is read");
    };
    let rest = rests(rereading.read());
    assert_eq!(rest.end, LookEnd::After(1.0));
    assert_eq!(rest.why, LookReason::RecordOutdated(conflict));
    let fenced = Failure::NotSent("the Lease is lost".to_owned());
    let LookStep::ReadCluster(rereading) = claim(Err(fenced.clone())) else {
        panic!("it is read");
    };
    let rest = rests(rereading.read());
    assert_eq!(rest.end, LookEnd::After(1.0));
    assert_eq!(rest.why, LookReason::RecordNotWritten(fenced));
    let lost = Failure::NoAnswer("cut off".to_owned());
    let rest = rests(claim(Err(lost.clone())));
    assert_eq!(rest.why, LookReason::RecordNotWritten(lost));

    let (mut state, mut handover) = (LookState::default(), Handover::default());
    let taking = cluster("taking/7/central/rayfit-system");
    let rest = rests(not_owned(judged(&mut state, &mut handover, &taking, 10.0)));
    assert_eq!(rest.end, LookEnd::After(GRACE_S));
    assert!(matches!(rest.why, LookReason::Waits(_)), "{rest:?}");
}

/// A webhook refuses it until somebody corrects that, and something in the cluster changes all the time.
#[test]
fn a_record_that_is_refused_is_tried_ever_more_rarely() {
    let (mut state, mut handover) = (LookState::default(), Handover::default());
    let refused = Failure::Api(ApiStatus {
        code: 403,
        message: "admission webhook \"w\" denied the request".to_owned(),
        ..ApiStatus::default()
    });
    let mut tries = 0;
    for half_second in 0..1_200 {
        let now = f64::from(half_second) / 2.0;
        let of = judged(&mut state, &mut handover, &cluster("nobody"), now);
        let rest = match not_owned(of) {
            LookStep::WriteRecord(writing) => {
                tries += 1;
                rests(writing.wrote(&mut state, Err(refused.clone())))
            }
            step => rests(step),
        };
        assert_eq!(rest.why, LookReason::RecordNotWritten(refused.clone()));
    }
    assert!((10..=16).contains(&tries), "{tries} times in ten minutes");
    let of = judged(&mut state, &mut handover, &cluster("nobody"), 700.0);
    let LookStep::WriteRecord(writing) = not_owned(of) else {
        panic!("it is tried again");
    };
    let rest = rests(writing.wrote(&mut state, Ok(())));
    assert_eq!(rest.why, LookReason::RecordWritten { is_claim: true });
}

#[test]
fn who_may_not_scale_forgets_and_waits_for_a_change() {
    let mut suspended = cluster("central/rayfit-system");
    suspended["spec"]["suspend"] = json!(true);
    let mut state = idle();
    state.memory.changed_at = NOW;
    let rest = rests(not_owned(judged(
        &mut state,
        &mut Handover::default(),
        &suspended,
        0.0,
    )));
    assert_eq!(rest.end, LookEnd::UntilChanged);
    assert_eq!(rest.why, LookReason::NotOurs(Ineligible::Suspended));
    assert!(state.memory.changed_at == 0.0, "what was remembered is old");
    assert!(!state.is_idle());
}

#[test]
fn who_lost_the_annotation_releases_the_cluster() {
    let mut removed = cluster("central/rayfit-system");
    let annotations = removed["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("rayfit.dev/reconcile");
    let (mut state, mut handover) = (LookState::default(), Handover::default());
    let of = judged(&mut state, &mut handover, &removed, 0.0);
    let rest = rests(not_owned(of));
    assert!(
        matches!(rest.why, LookReason::Waits(_)),
        "effects of a predecessor may be under way: {rest:?}"
    );
    let of = judged(&mut state, &mut handover, &removed, 10.0);
    let LookStep::WriteRecord(writing) = not_owned(of) else {
        panic!("it is released");
    };
    assert!(!writing.is_claim());

    removed["metadata"]["annotations"][RECORD] = json!("nobody");
    let of = judged(&mut state, &mut handover, &removed, 11.0);
    let rest = rests(not_owned(of));
    assert_eq!(rest.end, LookEnd::UntilChanged);
    assert!(matches!(rest.why, LookReason::NotOurs(_)), "{rest:?}");
}

#[test]
fn nothing_is_done_while_the_gcs_is_silent_and_rounds_are_made_after_it() {
    let mut state = idle();
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    let asking = asks(step);
    let finishing = asking.blind(&state, &Blind::NoHead, NOW);
    assert!(finishing.round().chains.is_empty());
    let finished = finishing.finish(&mut state, NOW, || 0.5);
    assert_eq!(finished.rest.end, LookEnd::Paced { busy: false });
    assert!(finished.idle.is_none() && !state.is_idle());
    let step = LookStep::begin(&mut state, SeenObjects::Same);
    let asking = asks(step);
    let step = asking.answered(&mut state, (), NOW);
    assert!(matches!(step, RoundStep::Observe(_)), "nothing is compared");
}
