//! What holds of every plan, on the recorded snapshots and on generated ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use rayfit::plan::check::{Violation, check};
use rayfit::plan::{GroupPlan, Plan, Settings, Strategy, apply, decide};
use rayfit::snapshot::Snapshot;
use serde_json::Value;

/// The recorded snapshots with their seeds.
static RECORDED: LazyLock<Vec<(Value, Snapshot)>> = LazyLock::new(|| {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/corpus.jsonl.gz");
    let file = std::fs::File::open(corpus).unwrap();
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    let case = |line: std::io::Result<String>| {
        let mut case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let snapshot = serde_json::from_value(case["snapshot"].take()).unwrap();
        (case["seed"].take(), snapshot)
    };
    lines.map(case).collect()
});

fn settings(strategy: Strategy) -> Settings {
    Settings {
        strategy,
        ..Settings::default()
    }
}

/// Every unit of every demand is placed or reported with a reason.
fn nothing_is_lost(snapshot: &Snapshot, settings: &Settings) -> Result<(), String> {
    let (plan, report) = decide(snapshot, settings);
    for demand in &report.demands {
        let placed: u64 = demand.placed.iter().map(|placed| placed.count).sum();
        if placed + demand.unmet != demand.count && demand.unmet == 0 {
            return Err(format!("{demand:?}"));
        }
    }
    match plan.unmet.iter().find(|unmet| unmet.reasons.is_empty()) {
        Some(unmet) => Err(format!("no reason: {unmet:?}")),
        None => Ok(()),
    }
}

/// A launch has a demand, a minimum or a constraint that needs it.
fn launches_are_needed(snapshot: &Snapshot, settings: &Settings) -> Result<(), String> {
    let mut without = snapshot.clone();
    without.gcs.pending_resource_requests.clear();
    without.gcs.pending_gang_resource_requests.clear();
    without.gcs.cluster_resource_constraints.clear();
    let (plan, _) = decide(&without, settings);
    let minimum = |name: &str| {
        let groups = snapshot.ray_cluster["spec"]["workerGroupSpecs"]
            .as_array()
            .unwrap();
        let group = groups
            .iter()
            .find(|group| group["groupName"] == name)
            .unwrap();
        group["minReplicas"].as_u64().unwrap() * group["numOfHosts"].as_u64().unwrap_or(1)
    };
    match plan
        .groups
        .iter()
        .find(|group| group.launch > minimum(&group.name))
    {
        Some(group) => Err(format!("{group:?}")),
        None => Ok(()),
    }
}

/// Sent again and again, plans come to rest in a few rounds though no pod or node moves: a
/// rollback is followed by telling the raylet, a deleted pod by its replacement, no more.
fn settles(snapshot: &Snapshot, plan: &Plan, settings: &Settings) -> Result<(), String> {
    let (mut snapshot, mut plan) = (snapshot.clone(), plan.clone());
    for _ in 0..4 {
        if is_quiet(&plan) {
            return Ok(());
        }
        snapshot = apply::sent(&snapshot, &plan);
        plan = decide(&snapshot, settings).0;
    }
    if is_quiet(&plan) {
        Ok(())
    } else {
        Err(serde_json::to_string(&plan).unwrap())
    }
}

fn is_quiet(plan: &Plan) -> bool {
    let acts = |group: &GroupPlan| {
        group.launch_now > 0
            || group.replicas_now.is_some_and(|now| now != group.replicas)
            || !group.delete.is_empty()
    };
    let pods = plan.resizes.len() + plan.drains.len() + plan.raylet_syncs.len();
    pods == 0 && !plan.groups.iter().any(acts)
}

fn all_recorded(
    strategy: Strategy,
    property: impl Fn(&Snapshot, &Plan, &Settings) -> Result<(), String>,
) {
    let settings = settings(strategy);
    let mut failures = Vec::new();
    let mut count = 0;
    for (seed, snapshot) in RECORDED.iter() {
        count += 1;
        let (plan, _) = decide(snapshot, &settings);
        if let Err(failure) = property(snapshot, &plan, &settings) {
            failures.push(format!("seed {seed}: {failure}"));
        }
    }
    assert!(count >= 1000, "only {count} recorded snapshots");
    let shown = failures
        .iter()
        .take(5)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        failures.is_empty(),
        "{} of {count}:\n{shown}",
        failures.len()
    );
}

#[test]
fn every_plan_passes_the_check() {
    all_recorded(Strategy::Rayfit, |snapshot, plan, _| {
        match check(snapshot, plan)[..] {
            [] => Ok(()),
            [ref violation, ..] => Err(violation.to_string()),
        }
    });
}

#[test]
fn rays_plans_only_fail_in_sizes() {
    all_recorded(Strategy::Ray, |snapshot, plan, _| {
        let known = |v: &Violation| {
            matches!(
                v,
                Violation::Shrinks { .. }
                    | Violation::AboveCap { .. }
                    | Violation::LosesRequest { .. }
            )
        };
        match check(snapshot, plan).into_iter().find(|v| !known(v)) {
            None => Ok(()),
            Some(violation) => Err(violation.to_string()),
        }
    });
}

#[test]
fn deciding_twice_gives_the_same() {
    for strategy in [Strategy::Ray, Strategy::Rayfit] {
        all_recorded(strategy, |snapshot, plan, settings| {
            if decide(snapshot, settings).0 == *plan {
                Ok(())
            } else {
                Err("another plan".to_owned())
            }
        });
    }
}

#[test]
fn no_demand_is_lost_and_no_launch_without_need() {
    for strategy in [Strategy::Ray, Strategy::Rayfit] {
        all_recorded(strategy, |snapshot, _, settings| {
            nothing_is_lost(snapshot, settings)?;
            launches_are_needed(snapshot, settings)
        });
    }
}

#[test]
fn a_plan_that_was_sent_settles() {
    all_recorded(Strategy::Rayfit, settles);
}
