use super::*;

const START: f64 = 100.0;

fn sidecar() -> ScalerRole {
    ScalerRole::Sidecar {
        head_uid: "u".to_owned(),
    }
}

/// Reads what `version` says of each moment, whenever a read is due, until `until`.
fn reads(standby: &mut Standby, until: f64, version: impl Fn(f64) -> Option<String>) -> f64 {
    loop {
        let now = standby.next_read().max(START);
        if now > until {
            return now;
        }
        let is_fresh = standby.ask(now);
        if let Some(version) = version(now) {
            let version = Some(&*version);
            standby.heard(&read(version, now, is_fresh), now);
        }
    }
}

fn read(version: Option<&str>, asked: f64, is_fresh: bool) -> HeartbeatRead<'_> {
    HeartbeatRead {
        version,
        asked,
        is_fresh,
    }
}

const SAME: fn(f64) -> Option<String> = |_| Some("7".to_owned());

/// Another content every so many seconds.
fn renewed(every: f64) -> impl Fn(f64) -> Option<String> {
    move |now| Some(format!("{:.0}", (now / every).floor()))
}

#[test]
fn a_sidecar_stands_in_once_the_heartbeat_has_been_silent() {
    let mut standby = Standby::default();
    reads(&mut standby, START + SILENCE_S - 0.1, SAME);
    assert_eq!(standby.duty(), Duty::OwnMode);
    reads(&mut standby, START + SILENCE_S, SAME);
    assert_eq!(standby.duty(), Duty::StandIn, "it was read just then");
    reads(&mut standby, START + 600.0, SAME);
    assert_eq!(standby.duty(), Duty::StandIn);
    let later = |_| Some("8".to_owned());
    reads(&mut standby, START + 603.0, later);
    assert_eq!(standby.duty(), Duty::OwnMode, "it gives back");
}

#[test]
fn a_heartbeat_that_is_renewed_is_never_silent() {
    let mut standby = Standby::default();
    for until in 1..2_000 {
        reads(&mut standby, START + f64::from(until), renewed(3.0));
        assert_eq!(standby.duty(), Duty::OwnMode);
    }
}

#[test]
fn after_an_outage_the_replicas_have_time_to_renew() {
    let mut standby = Standby::default();
    reads(&mut standby, START + 3.0, SAME);
    let out = |now| SAME(now).filter(|_| now >= START + 60.0);
    reads(&mut standby, START + 67.0, out);
    assert_eq!(standby.duty(), Duty::OwnMode, "seen for seven seconds only");
    reads(&mut standby, START + 72.0, out);
    assert_eq!(standby.duty(), Duty::StandIn);
    // A sidecar that stands in goes on through the next outage, in which nobody can write.
    reads(&mut standby, START + 99.0, |_| None);
    assert_eq!(standby.duty(), Duty::StandIn);
}

#[test]
fn what_is_not_there_and_what_a_cache_says_prove_nothing() {
    let mut standby = Standby::default();
    for second in 0..100 {
        let now = START + f64::from(second);
        standby.heard(&read(None, now, true), now);
    }
    assert_eq!(standby.duty(), Duty::OwnMode, "no Lease");
    for second in 100..200 {
        let now = START + f64::from(second);
        standby.heard(&read(Some("7"), now, false), now);
    }
    assert_eq!(standby.duty(), Duty::OwnMode, "from the cache");
    let now = START + 200.0;
    standby.heard(&read(Some("6"), now, false), now);
    standby.heard(&read(Some("7"), now, true), now);
    assert_eq!(standby.duty(), Duty::StandIn, "the cache was old");
    // A backup of etcd was restored: the version is lower, and somebody has written it since.
    standby.heard(&read(Some("3"), now, true), now);
    assert_eq!(standby.duty(), Duty::OwnMode);
}

#[test]
fn a_heartbeat_is_not_believed_once_a_replica_was_at_work_without_it() {
    let (mut standby, role) = (Standby::default(), sidecar());
    let held = |role: &ScalerRole| HandoverRecord::Held(role.clone());
    standby.saw(held(&ScalerRole::Central));
    reads(&mut standby, START + 9.0, SAME);
    standby.saw(held(&ScalerRole::Central));
    assert_eq!(
        standby.duty(),
        Duty::StandIn,
        "the record is as it was before"
    );
    standby.saw(held(&role));
    let version = "9".to_owned();
    let taking = HandoverRecord::Taking {
        role: ScalerRole::Central,
        version,
    };
    standby.saw(taking);
    assert!(standby.is_disproved);
    reads(&mut standby, START + 500.0, SAME);
    assert_eq!(standby.duty(), Duty::OwnMode);
    reads(&mut standby, START + 503.0, |_| Some("8".to_owned()));
    reads(&mut standby, START + 515.0, |_| Some("8".to_owned()));
    assert_eq!(
        standby.duty(),
        Duty::OwnMode,
        "silent for as long as it was when that was wrong"
    );
    reads(&mut standby, START + 521.0, |_| Some("8".to_owned()));
    assert_eq!(
        standby.duty(),
        Duty::StandIn,
        "it was renewed, and is silent"
    );
}

/// The record is read every few seconds only, and a central replica may have written it after the last read and
/// before it was lost.
#[test]
fn a_record_that_was_written_before_the_silence_disproves_nothing() {
    let mut standby = Standby::default();
    standby.saw(HandoverRecord::Held(sidecar()));
    reads(&mut standby, START + SILENCE_S, SAME);
    assert_eq!(standby.duty(), Duty::StandIn);
    standby.saw(HandoverRecord::Held(ScalerRole::Central));
    assert_eq!(standby.duty(), Duty::StandIn);
    // What is written from then on does.
    let version = "9".to_owned();
    standby.saw(HandoverRecord::Taking {
        role: ScalerRole::Central,
        version,
    });
    assert_eq!(standby.duty(), Duty::OwnMode);
}

#[test]
fn a_cache_that_still_has_a_deleted_heartbeat_is_not_asked() {
    let mut standby = Standby::default();
    let end = reads(&mut standby, START + SILENCE_S, SAME);
    assert_eq!(standby.duty(), Duty::StandIn);
    assert!(!standby.ask(end));
    standby.heard(&read(None, end, false), end);
    assert!(standby.ask(end + POLL_S), "it is asked for what is stored");
    standby.heard(&read(None, end + POLL_S, true), end + POLL_S);
    assert_eq!(standby.duty(), Duty::StandIn, "nobody has renewed it");
    assert!(standby.ask(end + 2.0 * POLL_S));
}

/// How often a sidecar begins to stand in within so many seconds.
fn stand_ins(standby: &mut Standby, until: f64, version: impl Fn(f64) -> Option<String>) -> usize {
    let (mut count, mut before) = (0, standby.duty());
    let mut now = START;
    while now < START + until {
        now += 0.5;
        reads(standby, now, &version);
        if standby.duty() != std::mem::replace(&mut before, standby.duty()) {
            count += usize::from(standby.duty() == Duty::StandIn);
        }
    }
    count
}

#[test]
fn renewals_that_are_slow_do_not_hand_a_cluster_to_and_fro() {
    for (every, most) in [(9.0, 1), (14.0, 1), (20.0, 2), (30.0, 2)] {
        let mut standby = Standby::default();
        let count = stand_ins(&mut standby, QUIET_S, renewed(every));
        assert!((1..=most).contains(&count), "every {every} s: {count}");
        assert_eq!(standby.duty(), Duty::OwnMode);
        assert!(standby.needed_silence() <= LONGEST_SILENCE_S);
    }
}

#[test]
fn after_a_quiet_time_a_sidecar_stands_in_as_soon_as_ever() {
    let mut standby = Standby::default();
    reads(&mut standby, START + 10.5, SAME);
    assert_eq!(standby.duty(), Duty::StandIn);
    reads(&mut standby, START + 13.0, |_| Some("8".to_owned()));
    assert_eq!(standby.duty(), Duty::OwnMode);
    assert!(standby.needed_silence() > SILENCE_S);
    reads(&mut standby, START + QUIET_S + 20.0, |now| {
        renewed(3.0)(now).map(|version| format!("1{version}"))
    });
    assert!((standby.needed_silence() - SILENCE_S).abs() < 0.01);
}

#[test]
fn sidecars_do_not_all_stand_in_at_once() {
    let waits: Vec<f64> = (0..1_000)
        .map(|head| Standby::of_head(&format!("3f0c-{head}")).needed_silence() - SILENCE_S)
        .collect();
    assert!(waits.iter().all(|wait| (0.0..SPREAD_S).contains(wait)));
    for quarter in 0..4 {
        let from = SPREAD_S / 4.0 * f64::from(quarter);
        let within = waits
            .iter()
            .filter(|wait| (from..from + SPREAD_S / 4.0).contains(*wait));
        assert!(within.count() > 200, "{quarter}");
    }
    assert_eq!(Standby::of_head("u"), Standby::of_head("u"));
}
