//! Pods whose work uses ever other amounts of memory, round after round: they grow before they are
//! full, come down again, and are not resized again and again.

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rayfit_core::plan::check::check;
use rayfit_core::plan::{PlanSettings, decide};
use rayfit_core::snapshot::{History, Snapshot};
use serde_json::{Value, json};

const NOW: &str = "2026-01-14T12:00:00Z";
const MI: i64 = 1 << 20;
const GI: i64 = 1 << 30;

/// Ray reports the memory in use every so many seconds.
const REPORT_S: i64 = 5;

/// How long a resize takes, in seconds, until the raylet knows.
const RESIZE_S: i64 = 2;

/// The last report of use, as Rayfit keeps it.
#[derive(Clone, Copy)]
struct Report {
    bytes: i64,
    rise: i64,
    at: i64,
}

fn snapshot(second: i64, has: i64, report: Report, history: &History) -> Snapshot {
    let time = NOW.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second);
    let epoch = |second: i64| NOW.parse::<Timestamp>().unwrap().as_second() + second;
    let container = |memory: i64| {
        let size = json!({"cpu": "1", "memory": memory.to_string()});
        json!({"name": "ray", "resources": {"requests": size, "limits": size}})
    };
    let pod = |name: &str, group: &str, role: &str, memory: i64| {
        let container = container(memory);
        json!({
            "metadata": {"name": name, "labels": {"ray.io/cluster": "demo", "ray.io/node-type": role, "ray.io/group": group}},
            "spec": {"containers": [container]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "ray", "state": {"running": {}}, "resources": container["resources"]}]},
        })
    };
    let node = |name: &str, group: &str, total: Value, free: Value| {
        let id: Vec<u8> = name.bytes().cycle().take(28).collect();
        let id = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, id);
        json!({"nodeId": id, "instanceId": name, "rayNodeTypeName": group, "status": "RUNNING",
            "totalResources": total, "availableResources": free})
    };
    let head = json!({"node:__internal_head__": 1});
    let mut worker = node(
        "w",
        "cpu",
        json!({"CPU": 1, "memory": has}),
        json!({"memory": has}),
    );
    worker["memoryInUse"] =
        json!({"bytes": report.bytes, "risePerS": report.rise, "at": epoch(report.at)});
    let limits = json!({"groups": {"cpu": {"max-cpu": "1", "max-memory": (8 * GI).to_string(), "resize-timeout": 60}}});
    serde_json::from_value(json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": time.to_string(),
        "rayCluster": {
            "metadata": {"name": "demo", "namespace": "ray", "annotations": {"ray.io/ippr": limits.to_string()}},
            "spec": {
                "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [container(2 * GI)]}}},
                "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 1, "rayStartParams": {},
                    "template": {"spec": {"containers": [container(GI)]}}}],
            },
        },
        "pods": [pod("head", "headgroup", "head", 2 * GI), pod("w", "cpu", "worker", has)],
        "gcs": {"nodeStates": [node("head", "headgroup", head.clone(), head), worker]},
        "history": history,
    }))
    .unwrap()
}

/// What becomes of a pod of 1 GiB that may grow to 8 GiB, given what is in use in each second.
struct Outcome {
    /// The size in each second.
    sizes: Vec<i64>,
    /// When it was asked for another size.
    resizes: Vec<(usize, i64)>,
}

fn play(used: &[i64]) -> Outcome {
    let (mut has, mut coming) = (GI, BTreeMap::new());
    let mut history = History::default();
    let mut report = Report {
        bytes: used[0],
        rise: 0,
        at: 0,
    };
    let mut outcome = Outcome {
        sizes: Vec::new(),
        resizes: Vec::new(),
    };
    for (index, bytes) in used.iter().enumerate() {
        let second = i64::try_from(index).unwrap();
        has = coming.remove(&second).unwrap_or(has);
        outcome.sizes.push(has);
        if second % REPORT_S == 0 && second > 0 {
            report = Report {
                bytes: *bytes,
                rise: ((bytes - report.bytes) / REPORT_S).max(0),
                at: second,
            };
        }
        if !coming.is_empty() {
            continue;
        }
        let snapshot = snapshot(second, has, report, &history);
        let (plan, _) = decide(&snapshot, &PlanSettings::default());
        assert_eq!(check(&snapshot, &plan), []);
        for resize in &plan.resizes {
            assert_eq!(resize.cpu_milli, 1000);
            coming.insert(second + RESIZE_S, resize.memory_bytes);
            outcome.resizes.push((index, resize.memory_bytes));
        }
        history = plan.remember;
    }
    outcome
}

fn climb(from: i64, to: i64, a_second: i64) -> impl Iterator<Item = i64> {
    (0..)
        .map(move |second| (from + a_second * second).min(to))
        .take_while(move |used| *used < to)
}

#[test]
fn a_task_that_climbs_is_never_full_and_its_pod_comes_down_once_it_frees_memory() {
    let mut used: Vec<i64> = climb(300 * MI, 2560 * MI, 40 * MI).collect();
    used.extend([2560 * MI; 30]);
    let frees = used.len();
    used.extend([600 * MI; 90]);
    let Outcome { sizes, resizes } = play(&used);
    for (second, (used, has)) in used.iter().zip(&sizes).enumerate() {
        assert!(
            used * 100 < has * 95,
            "{} of {} MiB at {second}",
            used / MI,
            has / MI
        );
    }
    let [grows @ .., back] = &*resizes else {
        panic!("{resizes:?}")
    };
    assert!(grows.len() <= 4, "{resizes:?}");
    assert!((frees + 60..frees + 75).contains(&back.0), "{resizes:?}");
    assert_eq!(back.1, GI);
}

#[test]
fn what_is_freed_in_parts_is_given_back_in_parts_without_a_longer_wait() {
    let mut used: Vec<i64> = climb(300 * MI, 2560 * MI, 40 * MI).collect();
    used.extend([1400 * MI; 70]);
    used.extend([600 * MI; 120]);
    let resizes = play(&used).resizes;
    let [.., half, back] = &*resizes else {
        panic!("{resizes:?}")
    };
    assert_eq!((half.1, back.1), (2 * GI, GI), "{resizes:?}");
    assert!((60..90).contains(&(back.0 - half.0)), "{resizes:?}");
}

#[test]
fn memory_that_swings_does_not_make_the_pod_swing() {
    // Up and down by a gibibyte, every forty seconds.
    let swing = |second: i64| {
        if second / 40 % 2 == 0 {
            700 * MI
        } else {
            1700 * MI
        }
    };
    let used: Vec<i64> = (0..1200).map(swing).collect();
    let resizes = play(&used).resizes;
    // It grows, comes down once, and grows again; then it stays, because the next time is not spared
    // for as long.
    assert!(resizes.len() <= 3, "{resizes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// However the use goes: never below what is in use, never beyond the resize limits, in whole
    /// steps, and with a bounded number of resizes.
    #[test]
    fn whatever_is_in_use(steps in prop::collection::vec((0_i64..7000, 1_usize..60), 1..8)) {
        let used: Vec<i64> = steps
            .iter()
            .flat_map(|(mebibytes, seconds)| std::iter::repeat_n(mebibytes * MI, *seconds))
            .collect();
        let Outcome { resizes, .. } = play(&used);
        let mut shrinks: Vec<usize> = Vec::new();
        let mut before = GI;
        for (second, size) in &resizes {
            prop_assert!((GI..=8 * GI).contains(size) && size % GI == 0, "{size}");
            if *size < before {
                let last = second.saturating_sub(second % 5);
                prop_assert!(*size > used[last], "at {second}: {size} for {}", used[last]);
                shrinks.push(*second);
            }
            before = *size;
        }
        prop_assert!(shrinks.windows(2).all(|two| two[1] - two[0] >= 60), "{shrinks:?}");
        // It grows by a step at least each time, and what it grew by comes down in one.
        prop_assert!(resizes.len() <= 8 * (shrinks.len() + 1), "{resizes:?}");
    }
}
