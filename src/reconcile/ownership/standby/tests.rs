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

/// Another content every three seconds.
const RENEWED: fn(f64) -> Option<String> = |now| Some(format!("{:.0}", (now / 3.0).floor()));

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
        reads(&mut standby, START + f64::from(until), RENEWED);
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
    assert!(standby.is_disproved());
    reads(&mut standby, START + 500.0, SAME);
    assert_eq!(standby.duty(), Duty::OwnMode);
    reads(&mut standby, START + 503.0, |_| Some("8".to_owned()));
    reads(&mut standby, START + 515.0, |_| Some("8".to_owned()));
    assert_eq!(
        standby.duty(),
        Duty::StandIn,
        "it was renewed, and is silent"
    );
}
