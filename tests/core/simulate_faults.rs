//! Whatever goes wrong by seed, what must hold holds.

use std::ops::Range;
use std::path::PathBuf;

use rayfit_core::simulate::ray::jobs::JobState;

use crate::faults::draw;
use crate::faults::head::RECONNECT_S;
use crate::faults::plan::FaultPlan;
use crate::faults::trial::{Failed, Staging, trial, watched};

use crate::settings::{part_of, setting};

/// The seeds that are tried: as many as usual from 0 on, or what `RAYFIT_SEEDS` says: how many, `FIRST..END`, or
/// `FIRST..` for as many as usual. They are the same every time, so that a change is to blame for what it breaks;
/// `make test-long` tries fresh ones.
fn seeds() -> Range<u64> {
    let text = setting("RAYFIT_SEEDS").unwrap_or_else(|| "0..".to_owned());
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let first = first.parse().unwrap();
    let end = match end {
        "" => first + part_of(300, 60),
        end => end.parse().unwrap(),
    };
    first..end
}

fn failure(plan: &FaultPlan) -> Option<Failed> {
    trial(plan).unwrap()
}

/// The same, with how long the trial took in its world, in seconds.
fn failure_and_time(plan: &FaultPlan) -> (Option<Failed>, f64) {
    let mut seconds = 0.0;
    let failed = watched(plan, staging(plan), &mut |world, _| {
        seconds = world.now.seconds();
    });
    (failed.unwrap(), seconds)
}

fn staging(plan: &FaultPlan) -> Staging {
    Staging {
        reconciler: plan.scene.reconciler(),
        world: plan.scene.world(),
        spares_none: false,
        reconnect_s: RECONNECT_S,
    }
}

/// The plan without all jobs and faults that it does not need to break the same rule.
fn shrunk(plan: FaultPlan, failed: &Failed) -> FaultPlan {
    let rule = std::mem::discriminant(&failed.violation);
    let fails = |plan: &FaultPlan| {
        failure(plan).is_some_and(|failed| std::mem::discriminant(&failed.violation) == rule)
    };
    let plan = without(plan, |plan| &mut plan.faults, &fails);
    let plan = without(plan, |plan| &mut plan.scene.jobs, &fails);
    without(plan, |plan| &mut plan.faults, &fails)
}

/// The plan without what it does not need of a list: halves of it are left out, then quarters, down to
/// single ones.
fn without<T>(
    mut plan: FaultPlan,
    list: impl Fn(&mut FaultPlan) -> &mut Vec<T>,
    fails: &impl Fn(&FaultPlan) -> bool,
) -> FaultPlan {
    let mut size = list(&mut plan).len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < list(&mut plan).len() {
            let mut less = plan.clone();
            let end = (at + size).min(list(&mut less).len());
            list(&mut less).drain(at..end);
            if fails(&less) {
                plan = less;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    plan
}

fn told(plan: &FaultPlan, failed: &Failed) -> String {
    let (lines, log) = (plan.lines().unwrap(), failed.log.join("\n  "));
    let seed = plan.scene.settings.seed;
    format!(
        "seed {seed}: {}\n  {log}\nTo keep it as a test, store these lines as \
         tests/fixtures/simulate/faults/WHAT-HAPPENS.jsonl:\n{lines}",
        failed.violation
    )
}

/// Each failure names the seed: `RAYFIT_SEEDS=7..8 cargo test --test core simulate_faults` tries it
/// alone.
///
/// `RAYFIT_FAILURES` is how many of each half of the seeds are told.
#[test]
fn nothing_breaks_whatever_goes_wrong() {
    let Range { start, end } = seeds();
    println!("again with RAYFIT_SEEDS={start}..{end}");
    let most = setting("RAYFIT_FAILURES").map_or(3, |most| most.parse().unwrap());
    let middle = start.midpoint(end);
    let part = |seeds: Range<u64>| -> (Vec<String>, f64) {
        let mut played_s = 0.0;
        let failed = seeds.filter_map(|seed| {
            let plan = draw::plan(seed);
            let (failed, seconds) = failure_and_time(&plan);
            played_s += seconds;
            Some((plan, failed?))
        });
        let told = failed
            .take(most)
            .map(|(plan, failed)| {
                if setting("RAYFIT_UNSHRUNK").is_some() {
                    return told(&plan, &failed);
                }
                let plan = shrunk(plan, &failed);
                let failed = failure(&plan).unwrap();
                told(&plan, &failed)
            })
            .collect();
        (told, played_s)
    };
    let (told, played_s) = std::thread::scope(|scope| {
        let first = scope.spawn(|| part(start..middle));
        let (mut told, second_s) = part(middle..end);
        let (also_told, first_s) = first.join().unwrap();
        told.extend(also_told);
        (told, first_s + second_s)
    });
    println!("{:.0} virtual hours", played_s / 3600.0);
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// What once broke a rule.
#[test]
fn what_once_broke_does_not_break_again() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/simulate/faults");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            let plan = FaultPlan::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
            if let Some(failed) = failure(&plan) {
                panic!("{}: {}", path.display(), told(&plan, &failed));
            }
        }
    }
}

/// How many jobs have neither ended nor been lost in the end, and how many were lost.
fn left_and_lost(lines: &str) -> (usize, usize) {
    let plan = FaultPlan::read(lines).unwrap();
    let mut found = (0, 0);
    let failed = watched(&plan, staging(&plan), &mut |world, _| {
        let jobs = &world.ray.jobs;
        let lost = jobs.all.iter().filter(|job| job.state == JobState::Lost);
        found = (jobs.unended, lost.count());
    });
    assert_eq!(failed.unwrap(), None);
    found
}

/// Whether the pod of the head is lost or its node, and whoever scales the cluster.
#[test]
fn what_is_lost_with_the_head_is_done_all_the_same_where_drivers_return() {
    for strategy in ["rayfit", "ray"] {
        for node in [false, true] {
            let lost = |again: bool| {
                let scene = format!(
                    r#"{{"scene":{{"seed":1,"strategy":"{strategy}","idleTimeoutSeconds":20,"nodeCores":8}}}}
                    {{"group":{{"name":"small","cores":1,"min":0,"max":3,"hosts":1}}}}
                    {{"job":{{"at":0.0,"seconds":100.0,"cpu":1.0}}}}
                    {{"job":{{"at":1.0,"seconds":100.0,"cpu":1.0,"actor":true}}}}
                    {{"job":{{"at":2.0,"seconds":20.0,"cpu":8.0}}}}
                    {{"job":{{"at":30.0,"seconds":20.0,"cpu":1.0}}}}
                    {{"fault":{{"at":20.0,"kind":"headLost","node":{node},"again":{again}}}}}"#
                );
                left_and_lost(&scene)
            };
            // That of eight cores fits nowhere, and waits again.
            assert_eq!(lost(true), (1, 0), "{strategy} {node}");
            assert_eq!(lost(false), (0, 3), "{strategy} {node}");
        }
    }
}

/// What is seen of a trial: when the RayCluster or a pod changed, and how.
fn changes(plan: &FaultPlan, spares_none: bool) -> Vec<String> {
    let staging = Staging {
        spares_none,
        ..staging(plan)
    };
    let mut seen: Vec<String> = Vec::new();
    let mut last = String::new();
    let failed = watched(plan, staging, &mut |world, _| {
        let pods = world
            .workers()
            .map(|pod| (pod.name(), pod.phase(), pod.size()));
        let pods: Vec<_> = pods.collect();
        let version = &world.cluster.object()["metadata"]["resourceVersion"];
        let now = format!("{version} {pods:?}");
        if now != last {
            seen.push(format!("{:?} {now}", world.now));
            last = now;
        }
    });
    assert_eq!(failed.unwrap(), None);
    seen
}

/// Rounds that are spared would have changed nothing.
#[test]
fn the_same_is_done_whether_rounds_are_spared_or_not() {
    for seed in 0..part_of(30, 4) {
        let plan = draw::plan(seed);
        assert_eq!(changes(&plan, false), changes(&plan, true), "seed {seed}");
    }
}

#[test]
fn plans_are_written_as_they_are_read_and_trials_are_equal() {
    for seed in 0..part_of(20, 4) {
        let plan = draw::plan(seed);
        let read = FaultPlan::read(&plan.lines().unwrap()).unwrap();
        assert_eq!(read, plan);
        assert_eq!(failure(&read), failure(&plan));
    }
    assert!(FaultPlan::read("{}").is_err());
    assert!(FaultPlan::read("{\"fault\": {\"at\": 1, \"kind\": \"rain\"}}").is_err());
}
