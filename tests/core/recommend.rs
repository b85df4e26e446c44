//! Recommendations: what a person would reckon, and what always holds.

use rayfit_core::plan::{PlanSettings, Strategy};
use rayfit_core::policy::Settings;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::recommend::bounds::{Bounds, SearchField};
use rayfit_core::simulate::recommend::patch::ChoicePatch;
use rayfit_core::simulate::recommend::recommendation::{Recommendation, Risk};
use rayfit_core::simulate::recommend::search::{Search, SearchResult};
use rayfit_core::simulate::recommend::space::Space;
use rayfit_core::simulate::report::recommendation::Report;
use rayfit_core::simulate::settings::WorldSettings;
use rayfit_core::simulate::trace::{Job, JobDemand, JobShape, Trace};
use serde_json::{Value, json};

use crate::settings::part_of;

/// A worker group of pods with two cores, and its minimum and maximum.
fn group(name: &str, min: i64, max: i64) -> Value {
    let size = json!({"cpu": "2", "memory": "8Gi"});
    json!({
        "groupName": name, "replicas": min, "minReplicas": min, "maxReplicas": max, "rayStartParams": {},
        "template": {"spec": {"containers": [{"name": "ray-worker", "image": "ray:2.60.0",
            "resources": {"limits": size, "requests": size}}]}},
    })
}

fn cluster(idle: i64, groups: &[Value]) -> Value {
    let size = json!({"cpu": "1", "memory": "4Gi"});
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ray"},
        "spec": {
            "rayVersion": "2.60.0", "enableInTreeAutoscaling": true,
            "autoscalerOptions": {"version": "v2", "idleTimeoutSeconds": idle},
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [
                {"name": "ray-head", "image": "ray:2.60.0", "resources": {"limits": size, "requests": size}}]}}},
            "workerGroupSpecs": groups,
        },
    })
}

/// So many tasks of one core, every so many seconds.
fn bursts(count: u32, tasks: usize, every: f64, seconds: f64) -> Trace {
    let job = |at| Job {
        id: String::new(),
        name: String::new(),
        at,
        after: Vec::new(),
        seconds,
        demand: JobDemand::Task(JobShape::from([("CPU".to_owned(), 1.0)])),
        memory: Vec::new(),
        output: 0,
        retries: 3,
    };
    let jobs = (0..count).flat_map(|burst| vec![job(f64::from(burst) * every); tasks]);
    Trace {
        name: "test".to_owned(),
        jobs: jobs.collect(),
    }
}

fn search(cluster: &Value, trace: Trace, pod_start: f64, bounds: &[&str]) -> Search {
    let mut world = WorldSettings::default();
    world.set_pod_start(pod_start);
    let bounds: Vec<Bounds> = bounds.iter().map(|text| text.parse().unwrap()).collect();
    Search {
        space: Space::of(cluster, &trace, &world.pools, &bounds),
        trace,
        world,
        reconciler: RoundSettings {
            plan: PlanSettings {
                strategy: Strategy::Ray,
                ..PlanSettings::default()
            },
            ..RoundSettings::default()
        },
        admission: Settings::default(),
        simulations: 24,
        seeds: 1,
        gpu_weight: 20.0,
    }
}

fn recommended(search: &Search) -> (SearchResult, Recommendation) {
    let searched = search.run(&mut |_| {}).unwrap();
    let recommendation = Recommendation::of(&searched, None, None);
    (searched, recommendation)
}

/// The changes of the choice that is taken, in words.
fn taken(searched: &SearchResult, recommendation: &Recommendation) -> Vec<String> {
    let trial = recommendation.trials[recommendation.taken.unwrap()];
    let changes = searched.trials[trial].patch.changes.iter();
    changes.map(ToString::to_string).collect()
}

const SIZES: [&str; 2] = ["podCpus=today", "resizeCpus=today"];

/// Pods that take 60 s to start are removed after 30 s, and needed again after 90: who keeps them
/// waits once, instead of each time.
#[test]
fn gaps_longer_than_the_idle_timeout_ask_for_a_longer_one() {
    let today = cluster(30, &[group("cpu", 0, 10)]);
    let bounds = [&SIZES[..], &["minReplicas=today", "maxReplicas=today"]].concat();
    let search = search(&today, bursts(16, 8, 110.0, 20.0), 60.0, &bounds);
    let (searched, recommendation) = recommended(&search);
    let fastest = *recommendation.trials.last().unwrap();
    let fastest = &searched.trials[fastest];
    assert_eq!(fastest.patch.changes.len(), 1, "{:?}", fastest.patch);
    let change = &fastest.patch.changes[0];
    assert_eq!(change.field, "idleTimeoutSeconds");
    let idle: f64 = change.to.parse().unwrap();
    assert!((90.0..=300.0).contains(&idle), "{change}");
    assert!(
        fastest.result.wait.mean < 0.2 * searched.today().result.wait.mean,
        "{:?}",
        fastest.result.wait
    );
}

/// A group that nothing runs on costs its minimum and gives nothing.
#[test]
fn a_group_that_is_never_used_gets_no_minimum() {
    let mut labelled = group("special", 2, 4);
    // Tasks go to nodes without GPUs, as these do not exist for who asks for none.
    let container = &mut labelled["template"]["spec"]["containers"][0];
    container["resources"]["limits"]["nvidia.com/gpu"] = json!("1");
    let today = cluster(60, &[group("cpu", 0, 10), labelled]);
    let bounds = [
        &SIZES[..],
        &["idleTimeoutSeconds=today", "maxReplicas=today"],
    ]
    .concat();
    let search = search(&today, bursts(6, 8, 200.0, 20.0), 7.0, &bounds);
    let (searched, recommendation) = recommended(&search);
    let changes = taken(&searched, &recommendation);
    assert!(
        changes.contains(&"special: minReplicas 2 -> 0".to_owned()),
        "{changes:?}"
    );
    assert!(!recommendation.has_today());
}

/// As the workload always uses four pods, they cost the same as a minimum, and are there at once.
#[test]
fn a_lasting_level_asks_for_a_minimum() {
    let today = cluster(60, &[group("cpu", 0, 10)]);
    let bounds = [
        &SIZES[..],
        &["idleTimeoutSeconds=today", "maxReplicas=today"],
    ]
    .concat();
    let search = search(&today, bursts(30, 8, 60.0, 60.0), 120.0, &bounds);
    let (searched, recommendation) = recommended(&search);
    let changes = taken(&searched, &recommendation);
    assert!(
        changes.contains(&"cpu: minReplicas 0 -> 4".to_owned()),
        "{changes:?}"
    );
    let risk = Risk::of(
        &searched,
        &searched.trials[recommendation.trials[recommendation.taken.unwrap()]],
    );
    assert_eq!((risk.worse_parts, risk.parts), (0, 10), "{risk:?}");
}

/// Four pods for four pods' work all the time, which are there from the start: nothing waits less,
/// and less of anything waits longer or costs the same.
#[test]
fn the_best_settings_are_recognised() {
    let today = cluster(60, &[group("cpu", 4, 4)]);
    let bounds = [&SIZES[..], &["minReplicas=4..4", "maxReplicas=4..8"]].concat();
    let search = search(&today, bursts(10, 8, 60.0, 60.0), 7.0, &bounds);
    let (searched, recommendation) = recommended(&search);
    assert_eq!(recommendation.trials, [0], "today's alone is on the front");
    assert_eq!(recommendation.taken, Some(0));
    let report = Report {
        search: &search,
        searched: &searched,
        recommendation: &recommendation,
        price: None,
        is_wanted: false,
    };
    assert!(
        report.legend().contains("leave them as they are"),
        "{}",
        report.legend()
    );
    assert_eq!(report.bare_patch(0), "[]\n");
}

/// Every choice is within the bounds, whatever holds today.
#[test]
fn bounds_are_kept() {
    let today = cluster(60, &[group("cpu", 0, 10)]);
    let bounds = [
        "idleTimeoutSeconds=200..400",
        "minReplicas=1..3",
        "maxReplicas=2..6",
        "podCpus=1..2",
    ];
    let search = search(&today, bursts(3, 8, 200.0, 20.0), 7.0, &bounds);
    let (searched, recommendation) = recommended(&search);
    assert!(!recommendation.has_today(), "its timeout is out of bounds");
    for trial in &recommendation.trials {
        let trial = &searched.trials[*trial];
        let cluster = trial.patch.apply(&today);
        let spec = &cluster["spec"];
        let idle = spec["autoscalerOptions"]["idleTimeoutSeconds"].as_i64();
        assert!((200..=400).contains(&idle.unwrap()), "{spec}");
        let group = &spec["workerGroupSpecs"][0];
        let size = &group["template"]["spec"]["containers"][0]["resources"]["limits"];
        let cores: i64 = size["cpu"].as_str().unwrap().parse().unwrap();
        assert_eq!(
            size["memory"],
            format!("{}Gi", 4 * cores),
            "at the same ratio"
        );
        let halves = 2 / cores;
        let (min, max) = (&group["minReplicas"], &group["maxReplicas"]);
        assert!((halves..=3 * halves).contains(&min.as_i64().unwrap()));
        assert!((2 * halves..=6 * halves).contains(&max.as_i64().unwrap()));
    }
}

/// What users want is found among the choices, or it is said that there is nothing of the kind.
#[test]
fn what_is_wanted_is_taken() {
    let today = cluster(60, &[group("cpu", 0, 10)]);
    let search = search(&today, bursts(6, 8, 200.0, 20.0), 60.0, &SIZES);
    let searched = search.run(&mut |_| {}).unwrap();
    let of = |max_wait, max_cost| Recommendation::of(&searched, max_wait, max_cost);
    let place = |recommendation: &Recommendation| {
        let trial = recommendation.taken.map(|at| recommendation.trials[at])?;
        let trial = &searched.trials[trial];
        Some((trial.result.wait.mean, trial.cost))
    };
    let (fastest, dearest) = place(&of(None, Some(1e9))).unwrap();
    let (slowest, cheapest) = place(&of(Some(1e9), None)).unwrap();
    assert!(fastest < slowest && cheapest < dearest);
    let (wait, cost) = place(&of(Some(1.1 * fastest + 1.0), None)).unwrap();
    assert!(wait <= 1.1 * fastest + 1.0 && cost <= dearest);
    assert_eq!(place(&of(None, Some(0.5 * cheapest))), None);
}

/// Bounds of simulations hold, and equal searches are equal.
#[test]
fn searches_are_bounded_and_equal() {
    let today = cluster(60, &[group("cpu", 1, 10), group("more", 0, 5)]);
    let mut search = search(&today, bursts(3, 8, 100.0, 20.0), 7.0, &[]);
    for simulations in [1, 7, 20] {
        search.simulations = simulations;
        let searched = search.run(&mut |part| assert!((0.0..=1.0).contains(&part)));
        let searched = searched.unwrap();
        assert!(searched.trials.len() <= simulations);
        assert_eq!(Ok(searched), search.run(&mut |_| {}));
    }
}

/// What is simulated is what the patch makes of the cluster, in the one form and in the other.
#[test]
fn patches_change_what_they_say() {
    let mut today = cluster(60, &[group("cpu", 1, 10), group("more", 0, 5)]);
    let limits =
        json!({"groups": {"more": {"max-cpu": "8", "max-memory": "32Gi", "resize-timeout": 60}}});
    today["metadata"]["annotations"] = json!({"ray.io/ippr": limits.to_string(), "other": "x"});
    today["spec"]
        .as_object_mut()
        .unwrap()
        .remove("autoscalerOptions");
    let search = search(&today, bursts(3, 40, 100.0, 20.0), 7.0, &[]);
    let parameters = &search.space.parameters;
    let of_groups = SearchField::ALL.into_iter();
    for field in of_groups.filter(|field| !matches!(field, SearchField::Policy(_))) {
        assert!(
            parameters.iter().any(|one| one.field == field),
            "{field:?} is not searched"
        );
    }
    for at in 0..parameters.len() {
        let mut choice = search.space.today();
        choice[at] = usize::from(choice[at] == 0);
        let patch = ChoicePatch::of(&search.space, &choice);
        assert!(!patch.changes.is_empty(), "{:?}", parameters[at]);
        let changed = patch.apply(&today);
        assert_ne!(changed, today);
        let read: json_patch::Patch = serde_json::from_value(json!(patch.patch)).unwrap();
        let mut again = today.clone();
        json_patch::patch(&mut again, &read).unwrap();
        assert_eq!(again, changed);
        // Groups in another order are not changed by mistake.
        let mut other = today.clone();
        other["spec"]["workerGroupSpecs"]
            .as_array_mut()
            .unwrap()
            .reverse();
        let is_of_group = parameters[at].group.is_some();
        let names_no_place = parameters[at].field == SearchField::ResizeCpus;
        if is_of_group && !names_no_place {
            assert!(json_patch::patch(&mut other, &read).is_err(), "{read:?}");
        }
    }
    let patch = ChoicePatch::of(&search.space, &search.space.today());
    assert_eq!(patch, ChoicePatch::default());
}

/// A search over RayPolicies too: pods of a core that may grow to eight, bursts with gaps.
fn with_policy(seeds: u32) -> Search {
    let mut today = cluster(20, &[group("cpu", 0, 10)]);
    let limits =
        json!({"groups": {"cpu": {"max-cpu": "8", "max-memory": "32Gi", "resize-timeout": 60}}});
    today["metadata"]["annotations"] = json!({"ray.io/ippr": limits.to_string()});
    let fixed = [
        "podCpus=today",
        "resizeCpus=today",
        "minReplicas=today",
        "maxReplicas=today",
        "idleTimeoutSeconds=today",
    ];
    let mut search = search(&today, bursts(8, 8, 150.0, 20.0), 60.0, &fixed);
    search.reconciler = RoundSettings::default();
    search.seeds = seeds;
    search.space = search
        .space
        .with_policy(&search.reconciler, &search.trace, &[]);
    search
}

/// Keep times, shrinking and headroom are searched with strategy rayfit, and change the RayPolicy alone.
#[test]
fn fields_of_policies_are_searched() {
    let mut search = with_policy(1);
    search.simulations = part_of(search.simulations, 12);
    let fields: Vec<&str> = (search.space.parameters.iter())
        .map(|one| one.field.into())
        .collect();
    assert_eq!(
        fields,
        ["keepSmallSeconds", "shrinkAfterSeconds", "headroomCpus"]
    );
    let searched = search.run(&mut |_| {}).unwrap();
    let has = |patch: &ChoicePatch, name: &str| patch.changes.iter().any(|one| one.field == name);
    let mut differ = 0;
    for trial in &searched.trials[1..] {
        assert!(trial.patch.patch.0.is_empty(), "{:?}", trial.patch);
        let policy = trial.patch.policy_patch().unwrap();
        let reconcile = &policy["spec"]["reconcile"];
        let is_set = |pointer: &str| reconcile.pointer(pointer).is_some_and(Value::is_u64);
        let patch = &trial.patch;
        assert_eq!(
            is_set("/inPlace/keepSmallSeconds"),
            has(patch, "keepSmallSeconds")
        );
        assert_eq!(
            is_set("/inPlace/shrinkAfterSeconds"),
            has(patch, "shrinkAfterSeconds")
        );
        assert_eq!(is_set("/headroom/cpus"), has(patch, "headroomCpus"));
        differ += usize::from(trial.result != searched.today().result);
    }
    assert!(
        differ > part_of(3, 1),
        "they are simulated, not only written: {differ}"
    );
    let strategy_ray = Space::of(&search.space.cluster, &search.trace, &[], &[]);
    let mut settings = RoundSettings::default();
    settings.plan.strategy = Strategy::Ray;
    let same = strategy_ray
        .clone()
        .with_policy(&settings, &search.trace, &[]);
    assert_eq!(
        same, strategy_ray,
        "a RayPolicy has no effect with strategy ray"
    );
}

/// With several seeds figures are means, the risk counts seeds, and as many simulations are made in all.
#[test]
fn several_seeds_tell_chance_from_gain() {
    let (mut one, mut three) = (with_policy(1), with_policy(3));
    for search in [&mut one, &mut three] {
        search.simulations = part_of(12, 3);
    }
    let (first, searched) = (
        one.run(&mut |_| {}).unwrap(),
        three.run(&mut |_| {}).unwrap(),
    );
    assert!(searched.trials.len() <= three.simulations / 3);
    let today = searched.today();
    assert_eq!(
        today.by_seed[0],
        first.today().by_seed[0],
        "the same first seed"
    );
    let waits: Vec<f64> = today.by_seed.iter().map(|one| one.wait.mean).collect();
    assert!(
        waits
            .windows(2)
            .any(|two| two[0].total_cmp(&two[1]).is_ne()),
        "{waits:?}"
    );
    let mean = waits.iter().sum::<f64>() / 3.0;
    assert!((today.result.wait.mean - mean).abs() < 1e-9);
    let risk = Risk::of(&searched, today);
    assert_eq!(
        (risk.better_seeds, risk.seeds),
        (0, 3),
        "nothing is better than itself"
    );
    for trial in &searched.trials {
        let risk = Risk::of(&searched, trial);
        assert!(risk.better_seeds <= risk.seeds && risk.seeds == 3);
    }
    assert_eq!(
        searched,
        three.run(&mut |_| {}).unwrap(),
        "equal on every run"
    );
}
