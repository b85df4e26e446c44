//! Strategy `Ray` against the recorded answers of Ray 2.60.0's own code.
//!
//! `tests/parity/corpus.jsonl.gz` has one case per line: a snapshot and what Ray decides on it
//! (`tests/parity/ray_answer.py`). `RAYFIT_PARITY_CASES` names a file of fresh ones instead.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rayfit_core::plan::{DemandKind, Plan, PlanSettings, RemovalCause, Strategy, decide};
use rayfit_core::snapshot::Snapshot;
use serde_json::{Map, Value, json};

use crate::settings::setting;

fn cases() -> Box<dyn BufRead> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/corpus.jsonl.gz");
    let path = setting("RAYFIT_PARITY_CASES").map_or(corpus, PathBuf::from);
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let reader: Box<dyn Read> = if path.extension().is_some_and(|end| end == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    Box::new(BufReader::new(reader))
}

/// Counts by the position of the first equal request, as Ray's answer has them.
fn counted<T: PartialEq>(wanted: &[T], left: impl Iterator<Item = (usize, u64)>) -> Value {
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    for (index, count) in left {
        let first = wanted
            .iter()
            .position(|other| *other == wanted[index])
            .unwrap();
        *counts.entry(first).or_default() += count;
    }
    json!(
        counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect::<Vec<_>>()
    )
}

fn unmet(plan: &Plan, kind: DemandKind) -> impl Iterator<Item = (usize, u64)> {
    plan.unmet
        .iter()
        .filter(move |unmet| unmet.kind == kind)
        .map(|unmet| (unmet.index, unmet.count))
}

fn sorted(mut list: Vec<Value>) -> Value {
    list.sort_by_key(Value::to_string);
    Value::Array(list)
}

fn cause(cause: RemovalCause) -> &'static str {
    match cause {
        RemovalCause::GroupMax => "MAX_NUM_NODE_PER_TYPE",
        RemovalCause::ClusterMax => "MAX_NUM_NODES",
        RemovalCause::Idle => "IDLE",
        RemovalCause::NodeLeaves
        | RemovalCause::Scattered
        | RemovalCause::NotAdmitted
        | RemovalCause::GivesWay
        | RemovalCause::Unschedulable
        | RemovalCause::MadeTooLarge
        | RemovalCause::NeverJoined
        | RemovalCause::GroupGone
        | RemovalCause::StopRequested
        | RemovalCause::Stopped => "none of Ray's",
    }
}

/// The plan in the form of Ray's answer.
fn answer(snapshot: &Snapshot, plan: &Plan) -> Map<String, Value> {
    let gcs = &snapshot.gcs;
    let requests: Vec<_> = gcs
        .pending_resource_requests
        .iter()
        .map(|by| &by.request)
        .collect();
    let gangs = unmet(plan, DemandKind::PlacementGroup).map(|(index, _)| (index, 1));
    let mut answer = json!({
        "headRunning": plan.waiting.is_none(),
        "tasks": counted(&requests, unmet(plan, DemandKind::Tasks)),
        "gangs": counted(&gcs.pending_gang_resource_requests, gangs),
        "constraints": unmet(plan, DemandKind::Constraint).count(),
        "syncs": sorted(plan.raylet_syncs.iter().map(|s| json!([s.pod, s.cpu_milli, s.memory_bytes])).collect()),
    });
    if plan.waiting.is_none() {
        let per_group = |of: fn(&rayfit_core::plan::GroupPlan) -> u64| -> Value {
            plan.groups
                .iter()
                .filter(|g| of(g) > 0)
                .map(|g| (g.name.clone(), json!(of(g))))
                .collect()
        };
        let deletes = plan.groups.iter().flat_map(|group| &group.delete);
        let deletes = deletes.filter(|deletion| deletion.cause != RemovalCause::Stopped);
        answer["launch"] = per_group(|group| group.launch);
        answer["launchNow"] = per_group(|group| group.launch_now);
        answer["cancels"] = per_group(|group| group.cancel);
        answer["drains"] = sorted(
            plan.drains
                .iter()
                .map(|d| json!([d.pod, cause(d.cause)]))
                .collect(),
        );
        answer["deletes"] = sorted(deletes.map(|d| json!([d.pod, cause(d.cause)])).collect());
        answer["resizes"] = sorted(
            plan.resizes
                .iter()
                .map(|r| json!([r.pod, r.cpu_milli, r.memory_bytes]))
                .collect(),
        );
    }
    answer.as_object().unwrap().clone()
}

/// What Ray writes into `replicas`, where it writes at all.
fn replicas_differ(plan: &Plan, ray: &Value) -> bool {
    ray.as_object().is_some_and(|written| {
        plan.groups.iter().any(|group| {
            let ray = written.get(&group.name).and_then(Value::as_i64);
            ray.or(group.replicas_now) != Some(group.replicas)
        })
    })
}

#[test]
fn decides_as_ray_does() {
    let (mut total, mut aborted, mut differences) = (0, 0, Vec::new());
    for line in cases().lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let snapshot: Snapshot = serde_json::from_value(case["snapshot"].clone()).unwrap();
        let settings = PlanSettings {
            strategy: Strategy::Ray,
            pending_idle_timeout_s: case["settings"]["pendingIdleTimeoutS"].as_f64(),
            ..PlanSettings::default()
        };
        let (plan, _) = decide(&snapshot, &settings);
        total += 1;
        if case["ray"].get("abort").is_some() {
            aborted += 1;
            continue;
        }
        let mut wrong = Vec::new();
        for (key, ours) in answer(&snapshot, &plan) {
            let rays = case["ray"].get(&key).unwrap_or(&Value::Null);
            let rays = if rays.is_array() {
                sorted(rays.as_array().unwrap().clone())
            } else {
                rays.clone()
            };
            if sorted_if_array(ours.clone()) != rays {
                wrong.push(format!("{key}: Ray {rays}, here {ours}"));
            }
        }
        if replicas_differ(&plan, &case["ray"]["replicas"]) {
            wrong.push(format!(
                "replicas: Ray {}, here {:?}",
                case["ray"]["replicas"], plan.groups
            ));
        }
        if !wrong.is_empty() {
            differences.push(format!("seed {}: {}", case["seed"], wrong.join("; ")));
        }
    }
    println!(
        "{total} cases, {aborted} of them aborted by Ray, {} differences",
        differences.len()
    );
    let shown: Vec<&String> = differences.iter().take(20).collect();
    assert!(
        differences.is_empty(),
        "{} of {total} differ:\n{shown:#?}",
        differences.len()
    );
    assert!(total >= 1, "there are no cases");
}

fn sorted_if_array(value: Value) -> Value {
    match value {
        Value::Array(list) => sorted(list),
        other => other,
    }
}
