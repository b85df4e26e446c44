//! Placement groups that cannot all get their pods are tried in turn, so that none holds another for ever.
#![allow(clippy::unwrap_used)]

use rayfit_core::plan::{NextTry, PlanSettings, RemovalCause, UnmetReason, decide};
use rayfit_core::snapshot::Snapshot;
use serde_json::{Value, json};

use super::played::{PlayedCluster, PlayedGroup, PlayedPod, START};

/// The number of pods that all Kubernetes nodes hold together.
const PLACES: usize = 8;

/// The number of bundles of a placement group, each as large as a pod.
const BUNDLES: usize = 6;

/// A cluster whose placement group waits and whose pods wait for places.
fn cluster(name: &'static str) -> PlayedCluster {
    let group = PlayedGroup {
        name: "cpu",
        hosts: 1,
        min: 0,
        tasks: 0,
        quota: 0,
    };
    PlayedCluster {
        name,
        groups: vec![group],
        bundles: BUNDLES,
        ..PlayedCluster::default()
    }
}

/// Gives the pods that wait the places that are free, to one cluster after the other.
fn schedule(clusters: &mut [PlayedCluster], later: u32) {
    loop {
        let taken: usize = clusters.iter().map(|cluster| cluster.running("cpu")).sum();
        let waiting = clusters.iter_mut().filter_map(|cluster| {
            let runs = cluster.running("cpu");
            let mut pods = cluster.pods.iter_mut();
            Some((runs, pods.find(|pod| pod.runs_since.is_none())?))
        });
        let Some((_, pod)) = waiting.min_by_key(|(runs, _)| *runs) else {
            return;
        };
        if taken >= PLACES {
            return;
        }
        pod.runs_since = Some(later);
    }
}

#[test]
fn two_placement_groups_never_hold_each_other_for_ever() {
    let mut clusters = [cluster("a"), cluster("b")];
    let mut whole_at = [None; 2];
    for later in (0..3600).step_by(2) {
        for (cluster, whole_at) in clusters.iter_mut().zip(whole_at) {
            if whole_at.is_none() {
                cluster.round(later);
            }
        }
        schedule(&mut clusters, later);
        for (cluster, whole_at) in clusters.iter_mut().zip(&mut whole_at) {
            if cluster.running("cpu") >= BUNDLES {
                whole_at.get_or_insert(later);
            }
            // Each has work for two minutes, and is then deleted.
            if whole_at.is_some_and(|at| later >= at + 120) {
                cluster.pods.clear();
            }
        }
    }
    for (cluster, whole_at) in clusters.iter().zip(whole_at) {
        let (name, made) = (cluster.name, cluster.made);
        assert!(whole_at.is_some_and(|at| at < 1200), "{name}: {whole_at:?}");
        assert!(made <= 30, "{name}: {made} pods");
    }
}

/// A snapshot in which other placement groups wait than the one of the played cluster, with how
/// often each was given up and when it is tried again.
fn waits_for(cluster: &PlayedCluster, later: u32, gangs: &[(&str, Value, u32)]) -> Snapshot {
    let mut written = serde_json::to_value(cluster.snapshot(later)).unwrap();
    let pending = gangs.iter().map(|(name, bundle, _)| {
        let bundle = json!({ "resourcesBundle": bundle });
        json!({ "requests": [bundle, bundle], "details": format!("{name}:SPREAD|PENDING") })
    });
    written["gcs"]["pendingGangResourceRequests"] = pending.collect();
    for (name, _, retry_at) in gangs {
        written["history"]["gangs"][format!("{name}:SPREAD")] =
            json!({ "times": 1, "retryAt": START + retry_at });
    }
    serde_json::from_value(written).unwrap()
}

#[test]
fn what_waits_for_another_one_says_the_same_as_time_passes() {
    let cluster = cluster("demo");
    let gangs = [
        ("one", json!({ "CPU": 1 }), 10),
        ("two", json!({ "CPU": 1 }), 20),
    ];
    let [first, second] = [100, 101].map(|later| {
        let snapshot = waits_for(&cluster, later, &gangs);
        decide(&snapshot, &PlanSettings::default()).0
    });
    assert_eq!(
        first.unmet[0].reasons,
        [UnmetReason::GivenUp(NextTry::InTurn)]
    );
    assert_eq!(first.unmet, second.unmet);
    assert_eq!(
        (first.unmet.len(), first.groups[0].launch),
        (1, 2),
        "one is tried"
    );
}

#[test]
fn only_what_could_hold_a_bundle_makes_room() {
    let pod = |name: &str, runs_since| PlayedPod {
        name: name.to_owned(),
        group: "cpu",
        replica: 0,
        made: 0,
        runs_since,
    };
    let mut cluster = cluster("demo");
    cluster.pods = vec![pod("idle", Some(80)), pod("pending", None)];
    for (bundle, makes_room) in [
        (json!({ "CPU": 1 }), true),
        (json!({ "GPU": 1 }), false),
        (json!({ "CPU": 2 }), false),
    ] {
        let snapshot = waits_for(&cluster, 100, &[("one", bundle.clone(), 200)]);
        let (plan, _) = decide(&snapshot, &PlanSettings::default());
        let drained = plan
            .drains
            .iter()
            .map(|drain| (drain.pod.as_str(), drain.cause));
        let deleted = (plan.groups[0].delete.iter()).map(|gone| (gone.pod.as_str(), gone.cause));
        let gone: Vec<_> = drained.chain(deleted).collect();
        let scattered = RemovalCause::Scattered;
        let expected = [("idle", scattered), ("pending", scattered)];
        assert_eq!(gone, expected[..if makes_room { 2 } else { 0 }], "{bundle}");
    }
}
