//! A step that a queue does not admit is taken back and halved, so that what it can admit runs.

use std::collections::BTreeMap;

use rayfit_core::plan::{
    PlanSettings, Problem, ProblemReason, RemovalCause, ScaleUp, Strategy, decide,
};

use super::played::{PlayedCluster, PlayedGroup};

fn group(name: &'static str, tasks: usize, quota: usize) -> PlayedGroup {
    PlayedGroup {
        name,
        hosts: 1,
        min: 0,
        tasks,
        quota,
    }
}

/// A cluster in a queue that admits all of its pods or none of those that are new.
fn of(groups: &[PlayedGroup]) -> PlayedCluster {
    PlayedCluster {
        name: "demo",
        groups: groups.to_vec(),
        is_queued: true,
        ..PlayedCluster::default()
    }
}

#[test]
fn what_can_be_admitted_is_whatever_the_quota() {
    for quota in [0, 1, 3, 7, 8] {
        let mut cluster = of(&[group("cpu", 8, quota)]);
        cluster.play(0, 180);
        assert_eq!(cluster.running("cpu"), quota);
        assert_eq!(
            cluster.waiting(),
            usize::from(quota < 8),
            "quota for {quota}"
        );
        assert!(
            cluster.changes <= 8,
            "quota for {quota}: {}",
            cluster.changes
        );
        let before = cluster.changes;
        cluster.play(180, 1200);
        assert_eq!(
            cluster.changes, before,
            "quota for {quota}: what is left waits"
        );
        // Quota that is freed is used.
        cluster.groups[0].quota = 8;
        cluster.play(1380, 120);
        assert_eq!(cluster.running("cpu"), 8, "quota for {quota}");
    }
}

#[test]
fn a_jump_gets_its_time_and_is_then_halved() {
    let mut cluster = of(&[group("cpu", 8, 0)]);
    let mut pods = BTreeMap::new();
    for later in (0..200).step_by(2) {
        let plan = cluster.round(later);
        let mut causes = (plan.groups[0].deletions()).map(|deletion| deletion.cause);
        assert!(causes.all(|cause| cause == RemovalCause::NotAdmitted));
        let is_told = |problem: &&Problem| problem.reason == ProblemReason::JumpRefused;
        let told = plan.problems.iter().filter(is_told).count();
        assert_eq!(told, usize::from(later >= 30), "at {later}");
        pods.entry(cluster.waiting()).or_insert(later);
    }
    let pods: Vec<(usize, u32)> = pods.into_iter().collect();
    assert_eq!(pods, [(1, 90), (2, 60), (4, 30), (8, 0)]);
}

#[test]
fn a_quota_that_comes_and_goes_changes_little() {
    let mut cluster = of(&[group("cpu", 8, 1)]);
    for minute in 0..60 {
        // One place more for a while, whichever pod has it, and one less again.
        cluster.groups[0].quota = 1 + usize::try_from(minute % 3).unwrap();
        cluster.play(minute * 60, 60);
        let last = cluster
            .pods
            .iter()
            .rposition(|pod| pod.runs_since.is_some());
        if let Some(last) = last.filter(|_| minute % 3 == 2) {
            cluster.pods.remove(last);
        }
    }
    assert!(cluster.changes <= 60, "{}", cluster.changes);
}

#[test]
fn what_is_not_admitted_is_not_grown_past() {
    let scale_up = ScaleUp {
        max_pods: 1,
        per_s: 5,
    };
    let mut cluster = of(&[group("cpu", 10, 2)]);
    cluster.settings.scale_up = Some(scale_up);
    for later in (0..300).step_by(2) {
        cluster.round(later);
        cluster.admit(later);
        assert!(cluster.waiting() <= 1, "at {later}");
    }
    assert_eq!((cluster.running("cpu"), cluster.waiting()), (2, 1));
    cluster.groups[0].quota = 5;
    cluster.play(300, 60);
    assert_eq!(cluster.running("cpu"), 5);
}

#[test]
fn a_group_without_quota_does_not_keep_others_waiting() {
    for groups in [
        [group("gpu", 3, 0), group("cpu", 6, 6)],
        [group("cpu", 6, 6), group("gpu", 3, 0)],
    ] {
        let mut cluster = of(&groups);
        cluster.play(0, 600);
        assert_eq!((cluster.running("cpu"), cluster.running("gpu")), (6, 0));
        let before = cluster.changes;
        cluster.play(600, 3600);
        assert!(
            cluster.changes - before <= 16,
            "{}",
            cluster.changes - before
        );
        for group in &mut cluster.groups {
            group.quota = 10;
        }
        cluster.play(4200, 700);
        assert_eq!(cluster.running("gpu"), 3);
    }
}

#[test]
fn a_replica_of_several_hosts_is_taken_back_as_a_whole() {
    for quota in 0..=6 {
        let hosts = PlayedGroup {
            hosts: 2,
            ..group("tpu", 12, quota * 2 + 1)
        };
        let mut cluster = of(&[hosts]);
        cluster.play(0, 200);
        assert_eq!(cluster.running("tpu"), quota * 2);
        assert_eq!(cluster.waiting(), if quota < 6 { 2 } else { 0 });
    }
}

#[test]
fn what_the_minimum_needs_is_not_taken_back() {
    let four = PlayedGroup {
        min: 4,
        ..group("cpu", 8, 3)
    };
    let mut cluster = of(&[four]);
    cluster.play(0, 600);
    assert_eq!((cluster.running("cpu"), cluster.waiting()), (0, 4));
    let before = cluster.changes;
    for later in (600..1200).step_by(5) {
        let plan = cluster.round(later);
        assert!(plan.is_quiet(), "{plan}");
    }
    assert_eq!(cluster.changes, before);
    cluster.groups[0].quota = 6;
    cluster.play(1200, 120);
    assert_eq!(cluster.running("cpu"), 6);
}

#[test]
fn a_placement_group_is_asked_for_as_a_whole() {
    let mut alone = of(&[group("cpu", 0, 3)]);
    alone.bundles = 6;
    alone.play(0, 3600);
    assert_eq!((alone.waiting(), alone.changes), (6, 1));

    let mut beside = of(&[group("cpu", 2, 3)]);
    beside.bundles = 6;
    let mut most = 0;
    for later in (0..1200).step_by(2) {
        beside.round(later);
        beside.admit(later);
        most = most.max(beside.running("cpu"));
    }
    assert_eq!(
        most, 2,
        "the tasks run, once the placement group has made way"
    );
}

#[test]
fn a_pod_whose_gate_is_forgotten_does_not_bound_the_others() {
    let mut cluster = of(&[group("cpu", 1, 8)]);
    cluster.round(0);
    cluster.groups[0].tasks = 5;
    for later in (2..200).step_by(2) {
        cluster.round(later);
        let rest = cluster.pods.iter_mut().skip(1);
        rest.for_each(|pod| pod.runs_since = (pod.made < later).then_some(later));
        if later == 60 {
            cluster.groups[0].tasks = 9;
        }
    }
    assert_eq!(cluster.running("cpu"), 8);
}

#[test]
fn strategy_ray_waits_as_ray_does() {
    let mut cluster = of(&[group("cpu", 8, 3)]);
    cluster.settings = PlanSettings {
        strategy: Strategy::Ray,
        ..PlanSettings::default()
    };
    for later in (0..600).step_by(2) {
        let snapshot = cluster.snapshot(later);
        let (plan, _) = decide(&snapshot, &cluster.settings);
        assert_eq!((&plan.problems, &plan.remember.jump), (&vec![], &None));
        assert_eq!(plan.groups[0].delete, []);
        assert_eq!(plan.groups[0].launch, 8);
    }
}
