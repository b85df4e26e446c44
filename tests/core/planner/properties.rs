//! What holds of every plan, on the recorded snapshots and on generated ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use flate2::read::GzDecoder;
use k8s_openapi::jiff::SignedDuration;
use rayfit_core::plan::check::{Violation, check};
use rayfit_core::plan::{
    DemandKind, GroupPlan, GroupReport, Headroom, HeadroomRequest, Plan, PlanSettings,
    RemovalCause, ScheduledStandby, SizedFor, Strategy, decide,
};
use rayfit_core::quantity::Quantity;
use rayfit_core::schedule::{self, CronExpression, Hours, HoursEnd};
use rayfit_core::snapshot::Snapshot;
use rayfit_core::snapshot::gcs::{
    ClusterResourceConstraint, GangResourceRequest, LabelSelector, ResourceRequest,
};
use serde_json::{Value, json};

use super::sent::sent;
use crate::settings::part_of;

const HEAD: &str = "headgroup";

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

fn settings(strategy: Strategy) -> PlanSettings {
    PlanSettings {
        strategy,
        ..PlanSettings::default()
    }
}

/// Settings that keep something ready in every cluster: CPUs, requests of memory and of a GPU, and
/// pods of a group at hours that always hold.
fn with_standby() -> PlanSettings {
    let amount = |text: &str| Quantity::parse(text).unwrap();
    let request = |resources: &[(&str, &str)], count| HeadroomRequest {
        resources: (resources.iter())
            .map(|(name, one)| ((*name).to_owned(), amount(one)))
            .collect(),
        count,
    };
    let headroom = Headroom {
        share_percent: 50,
        cpus: 3,
        requests: vec![
            request(&[("CPU", "2"), ("memory", "3Gi")], 2),
            request(&[("CPU", "1"), ("GPU", "1")], 1),
        ],
    };
    let always = ScheduledStandby {
        name: "always".to_owned(),
        hours: Hours {
            start: CronExpression::parse("0 0 * * *").unwrap(),
            end: HoursEnd::After(SignedDuration::from_hours(25)),
            zone: schedule::zone("Europe/Berlin").unwrap(),
        },
        min_replicas: [("g0".to_owned(), 3), ("worker".to_owned(), 2)].into(),
        headroom: Headroom::default(),
    };
    PlanSettings {
        headroom: Arc::new(headroom),
        schedules: [always].into(),
        ..settings(Strategy::Rayfit)
    }
}

/// What is kept ready changes nothing about demand: it is placed on the same nodes, by the same
/// growth, and no fewer nodes are launched. No pod grows that would not grow without it, and none
/// goes unless demand needs its room.
fn standby_takes_nothing(snapshot: &Snapshot, settings: &PlanSettings) -> Result<(), String> {
    let without = PlanSettings {
        headroom: Arc::default(),
        schedules: Arc::default(),
        ..settings.clone()
    };
    let ((plan, report), (alone, why)) = (decide(snapshot, settings), decide(snapshot, &without));
    let unmet = |plan: &Plan| -> Vec<_> {
        let unmet = plan.unmet.iter();
        unmet.map(|one| (one.kind, one.index, one.count)).collect()
    };
    if report.demands != why.demands || unmet(&plan) != unmet(&alone) {
        return Err(format!("demand is served otherwise:\n{why}\n{report}"));
    }
    let goes = |plan: &Plan| -> BTreeSet<String> {
        let deleted = plan.groups.iter().flat_map(GroupPlan::deletions);
        let deleted = deleted.filter(|one| one.cause != RemovalCause::GivesWay);
        let drained = plan.drains.iter();
        let drained = drained.filter(|one| one.cause != RemovalCause::GivesWay);
        let deleted = deleted.map(|one| one.pod.clone());
        deleted.chain(drained.map(|one| one.pod.clone())).collect()
    };
    let (gone, gone_alone) = (goes(&plan), goes(&alone));
    if gone.len() > gone_alone.len() {
        return Err(format!("more pods go:\n{alone}\n{plan}"));
    }
    // A pod that is kept goes on with what it had begun.
    let kept = |pod: &str| gone_alone.contains(pod) || gone.contains(pod);
    let grows = |plan: &Plan| -> Vec<(String, i64, i64)> {
        let resizes = plan.resizes.iter().filter(|resize| !resize.only_shrinks());
        let resizes = resizes.filter(|resize| !kept(&resize.pod));
        let sizes = resizes.map(|one| (one.pod.clone(), one.cpu_milli, one.memory_bytes));
        sizes.collect()
    };
    if grows(&plan) != grows(&alone) {
        return Err(format!("pods grow otherwise:\n{alone}\n{plan}"));
    }
    for (with, alone) in plan.groups.iter().zip(&alone.groups) {
        let ready: u64 = with.standby.iter().map(|launch| launch.nodes).sum();
        if with.launch - ready != alone.launch {
            return Err(format!("launches differ: {alone:?} {with:?}"));
        }
    }
    for kept in &report.standby {
        let placed: u64 = kept.placed.iter().map(|placed| placed.count).sum();
        if placed + kept.unmet != kept.count {
            return Err(format!("{kept:?}"));
        }
    }
    Ok(())
}

/// Every unit of every demand is placed or reported with a reason.
fn nothing_is_lost(snapshot: &Snapshot, settings: &PlanSettings) -> Result<(), String> {
    let (plan, report) = decide(snapshot, settings);
    for demand in &report.demands {
        let placed: u64 = demand.placed.iter().map(|placed| placed.count).sum();
        if placed + demand.unmet != demand.count {
            return Err(format!("{demand:?}"));
        }
    }
    match plan.unmet.iter().find(|unmet| unmet.reasons.is_empty()) {
        Some(unmet) => Err(format!("no reason: {unmet:?}")),
        None => Ok(()),
    }
}

/// What is said not to fit does not fit: no group could have one more node that holds it, looked up
/// in the RayCluster without the planner. Says of how many demands of each kind it could tell.
fn what_is_unmet_fits_nowhere(
    snapshot: &Snapshot,
    settings: &PlanSettings,
) -> Result<BTreeMap<DemandKind, usize>, String> {
    let (plan, report) = decide(snapshot, settings);
    // Pods that go have their place until they have gone.
    let places = |group: &GroupReport| {
        let pods = snapshot.pods.iter().filter(|pod| pod.group == group.name);
        let nodes = group.running + group.pending + group.remove;
        nodes.max(pods.count() as u64) + group.launch
    };
    let workers = report.groups.iter().filter(|group| group.name != HEAD);
    let (taken, most) = workers.clone().fold((0, 0), |(taken, most), group| {
        (taken + places(group), most + group.max)
    });
    let mut told = BTreeMap::new();
    for unmet in &plan.unmet {
        let gcs = &snapshot.gcs;
        // Placement groups and constraints are met as a whole or not at all.
        let nodes = match unmet.kind {
            DemandKind::Tasks => None,
            DemandKind::PlacementGroup => Some(nodes_of_gang(
                &gcs.pending_gang_resource_requests[unmet.index],
            )),
            DemandKind::Constraint => Some(nodes_of_constraint(
                &gcs.cluster_resource_constraints[unmet.index],
            )),
        };
        if let Some(nodes) = nodes {
            let Some(nodes) = nodes else {
                continue;
            };
            *told.entry(unmet.kind).or_default() += 1;
            let mut spare: Vec<_> = workers
                .clone()
                .filter_map(|group| {
                    let (hosts, cpu, memory) = first_size(snapshot, &group.name)?;
                    let count = group.max.saturating_sub(places(group));
                    (hosts == 1).then_some((count, cpu, memory))
                })
                .collect();
            if nodes.len() as u64 + taken <= most && all_fit(&nodes, &mut spare) {
                return Err(format!("{spare:?} is left beside {unmet:?}"));
            }
            continue;
        }
        let request = &gcs.pending_resource_requests[unmet.index].request;
        if !is_plain(request) {
            continue;
        }
        *told.entry(unmet.kind).or_default() += 1;
        for group in workers.clone() {
            let Some((hosts, cpu, memory)) = first_size(snapshot, &group.name) else {
                continue;
            };
            // A group above its maximum takes what another one could still have.
            let may_have_more = places(group) + hosts <= group.max && taken + hosts <= most;
            let needs = |name| request.resources_bundle.get(name).copied().unwrap_or(0.0);
            if may_have_more && needs("CPU") <= cpu && needs("memory") <= memory {
                return Err(format!("{group:?} has room for {unmet:?}"));
            }
        }
    }
    Ok(told)
}

/// Whether a request is for CPU and memory alone, on any node.
fn is_plain(request: &ResourceRequest) -> bool {
    let mut names = request.resources_bundle.keys();
    names.all(|name| name == "CPU" || name == "memory")
        && request.label_selectors.iter().all(is_empty)
}

/// Nodes, as CPUs and bytes, that would hold a placement group of any strategy: one for all of a
/// strict pack, and else one for each bundle. None if it asks for more than these.
fn nodes_of_gang(gang: &GangResourceRequest) -> Option<Vec<(f64, f64)>> {
    // Several constraints on one bundle would end Ray's autoscaler, so such a group is refused.
    let is_refused = |request: &ResourceRequest| request.placement_constraints.len() > 1;
    let has_selectors = !gang.bundle_selectors.is_empty();
    if has_selectors || !gang.requests.iter().all(is_plain) || gang.requests.iter().any(is_refused)
    {
        return None;
    }
    let needs = |request: &ResourceRequest, name: &str| {
        let amount = request.resources_bundle.get(name);
        amount.copied().unwrap_or(0.0)
    };
    let each = gang.requests.iter();
    let nodes = each.map(|request| (needs(request, "CPU"), needs(request, "memory")));
    let mut constraints = gang.requests.iter().flat_map(|r| &r.placement_constraints);
    if constraints.any(|one| one.affinity.is_some()) {
        let sum = |sum: (f64, f64), one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1);
        return Some(vec![nodes.fold((0.0, 0.0), sum)]);
    }
    Some(nodes.collect())
}

/// Nodes, as CPUs and bytes, that would hold what a constraint asks for: one for each bundle. None if
/// it asks for more than these, or for so many that not all ways of placing them can be tried.
fn nodes_of_constraint(constraint: &ClusterResourceConstraint) -> Option<Vec<(f64, f64)>> {
    let mut nodes = Vec::new();
    for wanted in &constraint.resource_requests {
        let request = &wanted.request;
        let count = usize::try_from(wanted.count).ok()?;
        if !is_plain(request) || nodes.len() + count > 6 {
            return None;
        }
        let needs = |name: &str| request.resources_bundle.get(name).copied().unwrap_or(0.0);
        nodes.extend(vec![(needs("CPU"), needs("memory")); count]);
    }
    Some(nodes)
}

/// Whether each of the nodes can be one of the spare ones (how many, CPUs, bytes), tried in all ways.
fn all_fit(nodes: &[(f64, f64)], spare: &mut [(u64, f64, f64)]) -> bool {
    let Some(((cpu, memory), others)) = nodes.split_first() else {
        return true;
    };
    (0..spare.len()).any(|one| {
        let (count, has_cpu, has_memory) = spare[one];
        if count == 0 || *cpu > has_cpu || *memory > has_memory {
            return false;
        }
        spare[one].0 -= 1;
        let fits = all_fit(others, spare);
        spare[one].0 += 1;
        fits
    })
}

fn is_empty(selector: &LabelSelector) -> bool {
    *selector == LabelSelector::default()
}

/// How many nodes a replica of a worker group has, and the CPUs and bytes of each at its first size;
/// none where more than the container's limits has a say in it.
fn first_size(snapshot: &Snapshot, name: &str) -> Option<(u64, f64, f64)> {
    let groups = snapshot.ray_cluster.object()["spec"]["workerGroupSpecs"].as_array()?;
    let group = groups.iter().find(|group| group["groupName"] == name)?;
    let is_plain = group["rayStartParams"] == json!({}) && group["resources"].is_null();
    let limits = group["template"]["spec"]["containers"][0]["resources"]["limits"].as_object()?;
    if !is_plain || limits.len() != 2 {
        return None;
    }
    let amount = |name: &str| {
        let quantity = Quantity::from_json(limits.get(name)?).ok()?;
        Some(i64::try_from(quantity.ceil_milli()).ok()? as f64 / 1000.0)
    };
    let hosts = group["numOfHosts"].as_u64().unwrap_or(1).max(1);
    Some((hosts, amount("cpu")?, amount("memory")?))
}

/// A launch has a demand, a minimum or a constraint that needs it.
fn launches_are_needed(snapshot: &Snapshot, settings: &PlanSettings) -> Result<(), String> {
    let mut without = snapshot.clone();
    without.gcs.pending_resource_requests.clear();
    without.gcs.pending_gang_resource_requests.clear();
    without.gcs.cluster_resource_constraints.clear();
    let (plan, _) = decide(&without, settings);
    let minimum = |name: &str| {
        let groups = snapshot.ray_cluster.object()["spec"]["workerGroupSpecs"]
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

/// A plan that was sent leaves nothing to do, though no pod or node has moved yet. Only where it
/// took a resize back is the raylet told in the next round: Kubernetes has to agree first.
fn settles(snapshot: &Snapshot, plan: &Plan, settings: &PlanSettings) -> Result<(), String> {
    let after = sent(snapshot, plan);
    asks_no_more(&after, plan, settings)
}

/// The same once KubeRay has made the pods, before Ray runs in any of them. Pods that were on
/// their way before cannot be told from the new ones then, so they may fit otherwise.
fn settles_when_made(
    snapshot: &Snapshot,
    plan: &Plan,
    settings: &PlanSettings,
) -> Result<(), String> {
    let ready = snapshot.gcs.node_states.len();
    if snapshot.pods.len() > ready {
        return Ok(());
    }
    let mut after = sent(snapshot, plan);
    let groups = after.ray_cluster.object()["spec"]["workerGroupSpecs"].clone();
    let mut made = Vec::new();
    for group in groups.as_array().unwrap() {
        let name = group["groupName"].as_str().unwrap();
        let label = json!({"ray.io/cluster": snapshot.cluster_name(),
            "ray.io/node-type": "worker", "ray.io/group": name});
        let there = after.pods.iter().filter(|pod| pod.group == name).count() as u64;
        for number in there..group["replicas"].as_u64().unwrap_or(0) {
            let metadata = json!({"name": format!("{name}-made-{number}"), "labels": label});
            let spec = &group["template"]["spec"];
            made.push(json!({"metadata": metadata, "spec": spec}));
        }
    }
    let mut written = serde_json::to_value(&after).unwrap();
    written["pods"].as_array_mut().unwrap().extend(made);
    after = serde_json::from_value(written).unwrap();
    asks_no_more(&after, plan, settings)
}

fn asks_no_more(after: &Snapshot, plan: &Plan, settings: &PlanSettings) -> Result<(), String> {
    let mut again = decide(after, settings).0;
    let told = std::mem::take(&mut again.raylet_syncs);
    let taken_back = |pod: &str| {
        plan.resizes
            .iter()
            .any(|resize| resize.pod == pod && resize.is_rollback())
    };
    if is_quiet(&again) && told.iter().all(|sync| taken_back(&sync.pod)) {
        return Ok(());
    }
    again.raylet_syncs = told;
    Err(format!("{plan}\nand again:\n{again}"))
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
    property: impl Fn(&Snapshot, &Plan, &PlanSettings) -> Result<(), String>,
) {
    all_recorded_with(&settings(strategy), property);
}

fn all_recorded_with(
    settings: &PlanSettings,
    property: impl Fn(&Snapshot, &Plan, &PlanSettings) -> Result<(), String>,
) {
    let mut failures = Vec::new();
    let mut count = 0;
    for (seed, snapshot) in RECORDED.iter().step_by(part_of(1, 3)) {
        count += 1;
        let (plan, _) = decide(snapshot, settings);
        if let Err(failure) = property(snapshot, &plan, settings) {
            failures.push(format!("seed {seed}: {failure}"));
        }
    }
    assert!(
        count >= part_of(1000, 333),
        "only {count} recorded snapshots"
    );
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

/// Launches that are remembered one by one, or as a number of them.
#[test]
fn launches_that_are_counted_are_decided_as_single_ones() {
    let mut compared = 0;
    for (seed, single) in RECORDED.iter() {
        let mut counted = single.clone();
        let instances = &mut counted.history.instances;
        for instance in std::mem::take(instances) {
            let alike = |last: &&mut rayfit_core::snapshot::history::Instance| {
                let is_launch = last.pod.is_none() && instance.pod.is_none();
                is_launch
                    && last.group == instance.group
                    && last.status == instance.status
                    && last.since == instance.since
            };
            match instances.last_mut().filter(alike) {
                Some(last) => last.count += 1,
                None => instances.push(instance),
            }
        }
        if instances.len() == single.history.instances.len() {
            continue;
        }
        compared += 1;
        for strategy in [Strategy::Ray, Strategy::Rayfit] {
            for pending_idle_timeout_s in [None, Some(30.0)] {
                let settings = PlanSettings {
                    pending_idle_timeout_s,
                    ..settings(strategy)
                };
                assert_eq!(
                    decide(&counted, &settings),
                    decide(single, &settings),
                    "seed {seed}"
                );
            }
        }
    }
    assert!(compared > 20, "only {compared}");
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
                    | Violation::AboveResizeLimit { .. }
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
fn what_cannot_be_met_fits_nowhere() {
    for strategy in [Strategy::Ray, Strategy::Rayfit] {
        let all = RefCell::new(BTreeMap::new());
        all_recorded(strategy, |snapshot, _, settings| {
            for (kind, told) in what_is_unmet_fits_nowhere(snapshot, settings)? {
                *all.borrow_mut().entry(kind).or_insert(0) += told;
            }
            Ok(())
        });
        let all = all.into_inner();
        for (kind, least) in [
            (DemandKind::Tasks, 100),
            (DemandKind::PlacementGroup, 20),
            (DemandKind::Constraint, 5),
        ] {
            assert!(
                all.get(&kind) >= Some(&part_of(least, least / 3)),
                "{all:?}"
            );
        }
    }
}

#[test]
fn a_plan_that_was_sent_settles() {
    all_recorded(Strategy::Rayfit, settles);
}

/// It is within the template and the resize limits, as the check says, and is not said again.
#[test]
fn how_large_new_pods_are_made_changes_nothing_else() {
    let large = PlanSettings {
        initial_sizes: Some(SizedFor::Request),
        ..settings(Strategy::Rayfit)
    };
    let count = RefCell::new(0);
    all_recorded_with(&large, |snapshot, plan, settings| {
        let (alone, _) = decide(snapshot, &self::settings(Strategy::Rayfit));
        let mut rest = plan.clone();
        for group in &mut rest.groups {
            *count.borrow_mut() += usize::from(group.initial_size.take().is_some());
        }
        if rest != alone {
            return Err("another plan".to_owned());
        }
        if let Some(violation) = check(snapshot, plan).first() {
            return Err(violation.to_string());
        }
        settles(snapshot, plan, settings)
    });
    let count = count.into_inner();
    assert!(count > part_of(20, 6), "only {count}");
}

#[test]
fn what_is_kept_ready_takes_nothing_from_demand() {
    all_recorded_with(&with_standby(), |snapshot, plan, settings| {
        standby_takes_nothing(snapshot, settings)?;
        match check(snapshot, plan)[..] {
            [] => Ok(()),
            [ref violation, ..] => Err(violation.to_string()),
        }
    });
}

#[test]
fn a_plan_that_keeps_something_ready_settles() {
    all_recorded_with(&with_standby(), settles);
}

#[test]
fn strategy_ray_keeps_nothing_ready() {
    let ray = PlanSettings {
        strategy: Strategy::Ray,
        ..with_standby()
    };
    all_recorded_with(&ray, |snapshot, plan, _| {
        if decide(snapshot, &settings(Strategy::Ray)).0 == *plan {
            Ok(())
        } else {
            Err("another plan".to_owned())
        }
    });
}

/// Of the first, all but two CPUs are needed, so the requests only fit in the order in which they
/// were packed when the nodes were launched. Of the second, a placement group has to find the room
/// of the pod that was asked to grow for it, not for the other one.
#[test]
fn requests_find_what_was_asked_for_them() {
    let launched = build(
        &[
            (5, 5, 0, 4, true, 1, 0),
            (6, 15, 1, 5, true, 0, 0),
            (3, 10, 2, 7, false, 0, 0),
        ],
        &[(2, 0, 9), (3, 6, 6)],
        &[],
    );
    let grown = build(
        &[(6, 2, 0, 3, true, 3, 0)],
        &[],
        &[(vec![4, 3, 3, 4], 0), (vec![2, 2, 3], 1)],
    );
    let settings = settings(Strategy::Rayfit);
    for snapshot in [launched, grown] {
        let snapshot: Snapshot = serde_json::from_value(snapshot).unwrap();
        let plan = decide(&snapshot, &settings).0;
        assert_eq!(settles(&snapshot, &plan, &settings), Ok(()));
    }
}

/// Clusters of one to three groups with pods and demands, all of them well-formed.
fn generated() -> impl proptest::strategy::Strategy<Value = Snapshot> {
    use proptest::prelude::*;
    let group = (
        1..9_i64,
        1..17_i64,
        0..3_i64,
        0..8_i64,
        any::<bool>(),
        0..4_usize,
        0..4_usize,
    );
    let task = (0..10_i64, 0..9_i64, 1..30_i64);
    let gang = (proptest::collection::vec(0..6_i64, 1..5), 0..3_u8);
    let groups = proptest::collection::vec(group, 1..4);
    let tasks = proptest::collection::vec(task, 0..5);
    let gangs = proptest::collection::vec(gang, 0..3);
    (groups, tasks, gangs).prop_map(|(groups, tasks, gangs)| {
        serde_json::from_value(build(&groups, &tasks, &gangs)).unwrap()
    })
}

type Group = (i64, i64, i64, i64, bool, usize, usize);

const GIB: i64 = 1 << 30;

/// Groups are (cpu, GiB, min, max above it, may grow, running pods, pending pods).
fn build(groups: &[Group], tasks: &[(i64, i64, i64)], gangs: &[(Vec<i64>, u8)]) -> Value {
    let mut pods = vec![
        json!({"metadata": {"name": "head", "labels": {"ray.io/node-type": "head", "ray.io/group": "headgroup"}}}),
    ];
    let mut nodes = vec![
        json!({"nodeId": "AA==", "instanceId": "head", "rayNodeTypeName": "headgroup", "status": "RUNNING", "totalResources": {"node:__internal_head__": 1}}),
    ];
    let mut specs = Vec::new();
    let mut limits = serde_json::Map::new();
    for (number, (cpu, gib, min, above, grows, running, pending)) in groups.iter().enumerate() {
        let name = format!("g{number}");
        let amounts = json!({"cpu": cpu, "memory": format!("{gib}Gi")});
        let container =
            json!({"name": "ray", "resources": {"requests": amounts, "limits": amounts}});
        let template = json!({"spec": {"containers": [container]}});
        if *grows {
            limits.insert(name.clone(), json!({"max-cpu": cpu * 2, "max-memory": format!("{}Gi", gib * 2), "resize-timeout": 60}));
        }
        for pod in 0..running + pending {
            let pod_name = format!("{name}-{pod}");
            pods.push(json!({"metadata": {"name": pod_name, "labels": {"ray.io/node-type": "worker", "ray.io/group": name}}, "spec": template["spec"]}));
            if pod < *running {
                let total = json!({"CPU": cpu, "memory": gib * GIB});
                let free = if pod % 2 == 0 {
                    total.clone()
                } else {
                    json!({})
                };
                let idle = if pod % 2 == 0 { "90000" } else { "0" };
                let id =
                    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &pod_name);
                nodes.push(json!({"nodeId": id, "instanceId": pod_name, "rayNodeTypeName": name, "status": "RUNNING", "totalResources": total, "availableResources": free, "idleDurationMs": idle}));
            }
        }
        specs.push(json!({"groupName": name, "replicas": running + pending, "minReplicas": min, "maxReplicas": min + above, "rayStartParams": {}, "template": template}));
    }
    let bundle = |cpu: i64, gib: i64| json!({"CPU": cpu, "memory": gib * GIB});
    let tasks = tasks.iter().map(|(cpu, gib, count)| json!({"request": {"resourcesBundle": bundle(*cpu, *gib), "labelSelectors": [{}]}, "count": count}));
    let gangs = gangs.iter().enumerate().map(|(number, (bundles, kind))| {
        let label = json!({"labelName": format!("_PG_{number}")});
        let constraints = [json!([]), json!([{"affinity": label}]), json!([{"antiAffinity": label}])];
        let bundle = |cpu: &i64| json!({"resourcesBundle": bundle(*cpu, 0), "placementConstraints": constraints[usize::from(*kind)]});
        json!({"requests": bundles.iter().map(bundle).collect::<Vec<_>>()})
    });
    let (tasks, gangs): (Vec<Value>, Vec<Value>) = (tasks.collect(), gangs.collect());
    let head = json!({"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [{"name": "ray", "resources": {"limits": {"cpu": 1}}}]}}});
    json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z", "pods": pods,
        "rayCluster": {
            "metadata": {"name": "c", "annotations": {"ray.io/ippr": json!({"groups": limits}).to_string()}},
            "spec": {"headGroupSpec": head, "workerGroupSpecs": specs},
        },
        "gcs": {"nodeStates": nodes, "pendingResourceRequests": tasks, "pendingGangResourceRequests": gangs},
    })
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..proptest::test_runner::Config::default() })]

    #[test]
    fn generated_clusters_are_planned_well(snapshot in generated()) {
        for strategy in [Strategy::Ray, Strategy::Rayfit] {
            let settings = settings(strategy);
            let (plan, _) = decide(&snapshot, &settings);
            proptest::prop_assert_eq!(check(&snapshot, &plan), []);
            proptest::prop_assert_eq!(&decide(&snapshot, &settings).0, &plan);
            proptest::prop_assert_eq!(nothing_is_lost(&snapshot, &settings), Ok(()));
            let told = what_is_unmet_fits_nowhere(&snapshot, &settings);
            proptest::prop_assert!(told.is_ok(), "{:?}", told);
            proptest::prop_assert_eq!(launches_are_needed(&snapshot, &settings), Ok(()));
            if strategy == Strategy::Rayfit {
                proptest::prop_assert_eq!(settles(&snapshot, &plan, &settings), Ok(()));
                proptest::prop_assert_eq!(settles_when_made(&snapshot, &plan, &settings), Ok(()));
            }
        }
        let settings = with_standby();
        let (plan, _) = decide(&snapshot, &settings);
        proptest::prop_assert_eq!(check(&snapshot, &plan), []);
        proptest::prop_assert_eq!(standby_takes_nothing(&snapshot, &settings), Ok(()));
        proptest::prop_assert_eq!(settles(&snapshot, &plan, &settings), Ok(()));
        proptest::prop_assert_eq!(settles_when_made(&snapshot, &plan, &settings), Ok(()));
    }
}
