//! Simulations: what a person would reckon, and what always holds.

use std::sync::Arc;

use rayfit_core::plan::{Headroom, PlanSettings, SizedFor, Strategy};
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::result::SimulationResult;
use rayfit_core::simulate::run::{SimulationError, run};
use rayfit_core::simulate::settings::{NodePool, WorldSettings};
use rayfit_core::simulate::trace::{self, Job, JobDemand, JobShape, MemoryUse, Trace};
use serde_json::{Value, json};

use crate::settings::part_of;

const BOTH: [Strategy; 2] = [Strategy::Rayfit, Strategy::Ray];

fn container(name: &str, cpu: i64) -> Value {
    let size = json!({"cpu": cpu.to_string(), "memory": format!("{}Gi", 4 * cpu)});
    json!({"name": name, "image": "ray:2.60.0", "resources": {"limits": size, "requests": size}})
}

/// Worker groups by name: the cores of a pod, the most pods, and the pods of a replica.
fn cluster(groups: &[(&str, i64, i64, i64)]) -> Value {
    let group = |(name, cpu, max, hosts): &(&str, i64, i64, i64)| {
        json!({
            "groupName": name, "replicas": 0, "minReplicas": 0, "maxReplicas": max,
            "numOfHosts": hosts, "rayStartParams": {},
            "template": {"spec": {"containers": [container("ray-worker", *cpu)]}},
        })
    };
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ray"},
        "spec": {
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0"},
                "template": {"spec": {"containers": [container("ray-head", 1)]}},
            },
            "workerGroupSpecs": groups.iter().map(group).collect::<Vec<_>>(),
        },
    })
}

/// The same, where the pods of the group `cpu` may grow to so many cores.
fn growing(groups: &[(&str, i64, i64, i64)], cores: i64) -> Value {
    let mut cluster = cluster(groups);
    let limits =
        json!({"max-cpu": cores, "max-memory": format!("{}Gi", 4 * cores), "resize-timeout": 60});
    let annotation = json!({"groups": {"cpu": limits}}).to_string();
    cluster["metadata"]["annotations"] = json!({"ray.io/ippr": annotation});
    cluster
}

fn job(at: f64, seconds: f64, demand: JobDemand) -> Job {
    Job {
        id: String::new(),
        name: String::new(),
        at,
        after: Vec::new(),
        seconds,
        demand,
        memory: Vec::new(),
        output: 0,
        retries: 3,
    }
}

fn cpus(cpus: f64) -> JobShape {
    JobShape::from([("CPU".to_owned(), cpus)])
}

fn tasks(count: usize, at: f64, seconds: f64, each: f64) -> Vec<Job> {
    vec![job(at, seconds, JobDemand::Task(cpus(each))); count]
}

fn trace(jobs: Vec<Job>) -> Trace {
    let name = "test".to_owned();
    Trace { name, jobs }
}

fn pool(cores: i64, max: u32) -> NodePool {
    NodePool {
        name: "pool".to_owned(),
        allocatable: Amounts::new(
            Quantity::from_units(cores),
            Quantity::from_units((4 * cores) << 30),
        ),
        min: 1,
        max,
        start_s: 60.0,
        idle_s: 120.0,
        ..NodePool::default()
    }
}

/// A world whose nodes are all of one pool.
fn one_pool(pool: NodePool) -> WorldSettings {
    WorldSettings {
        pools: vec![pool],
        ..WorldSettings::default()
    }
}

fn simulate(
    cluster: &Value,
    trace: &Trace,
    world: &WorldSettings,
    strategy: Strategy,
) -> SimulationResult {
    let settings = PlanSettings {
        strategy,
        ..PlanSettings::default()
    };
    simulate_with(cluster, trace, world, settings)
}

fn simulate_with(
    cluster: &Value,
    trace: &Trace,
    world: &WorldSettings,
    plan: PlanSettings,
) -> SimulationResult {
    let settings = RoundSettings {
        plan,
        ..RoundSettings::default()
    };
    run(cluster, trace, world, settings, &mut |_| {}).unwrap()
}

fn within(found: f64, least: f64, most: f64) {
    assert!(
        (least..=most).contains(&found),
        "{found} is not within {least} to {most}"
    );
}

/// The cores that are paid for so many seconds after the beginning.
fn cores_at(result: &SimulationResult, seconds: f64) -> f64 {
    let before = result.curve.iter().take_while(|point| point.at <= seconds);
    before.last().map_or(0.0, |point| point.cores)
}

/// Four pods of two cores for eight tasks: 1 s until the GCS knows, at most a round of the scaler,
/// 7 s for the pods; then 60 s of work, 60 s idle, and a few seconds until the pods are gone.
#[test]
fn a_burst_costs_what_one_would_reckon() {
    let (cluster, burst) = (
        cluster(&[("cpu", 2, 10, 1)]),
        trace(tasks(8, 10.0, 60.0, 1.0)),
    );
    for (strategy, round) in [(Strategy::Rayfit, 0.3), (Strategy::Ray, 5.2)] {
        let result = simulate(&cluster, &burst, &WorldSettings::default(), strategy);
        assert_eq!((result.jobs.ended, result.jobs.unfinished), (8, 0));
        assert_eq!((result.pods, result.harmed, result.resizes), (4, 0, 0));
        within(result.wait.mean, 7.0, 8.5 + round);
        within(result.makespan - result.endless_makespan, 7.0, 8.5 + round);
        within(
            result.cpu_hours.paid * 3600.0 / 8.0,
            127.0,
            133.0 + 2.0 * round,
        );
        within(result.cpu_hours.work * 3600.0, 479.9, 480.1);
    }
}

#[test]
fn equal_simulations_are_equal_and_seeds_differ() {
    let cluster = cluster(&[("cpu", 4, 20, 1)]);
    let jobs = (0..40).flat_map(|burst| tasks(7, f64::from(burst) * 33.0, 20.0, 1.0));
    let (jobs, world) = (trace(jobs.collect()), WorldSettings::default());
    let first = simulate(&cluster, &jobs, &world, Strategy::Rayfit);
    assert_eq!(first, simulate(&cluster, &jobs, &world, Strategy::Rayfit));
    let other = WorldSettings { seed: 2, ..world };
    assert_ne!(first, simulate(&cluster, &jobs, &other, Strategy::Rayfit));
}

/// Bursts of four CPUs, five minutes apart. With four CPUs of headroom a pod is there for each of
/// them, and a second one comes while the first one is busy; no more than these two are ever paid.
#[test]
fn headroom_is_there_when_a_burst_comes() {
    let cluster = cluster(&[("cpu", 4, 10, 1)]);
    let bursts = (1..6).flat_map(|burst| tasks(4, f64::from(burst) * 300.0, 60.0, 1.0));
    let (bursts, world) = (trace(bursts.collect()), WorldSettings::default());
    let headroom = PlanSettings {
        headroom: Arc::new(Headroom {
            cpus: 4,
            ..Headroom::default()
        }),
        ..PlanSettings::default()
    };
    let without = simulate(&cluster, &bursts, &world, Strategy::Rayfit);
    let with = simulate_with(&cluster, &bursts, &world, headroom);
    assert_eq!((with.jobs.ended, with.harmed), (20, 0));
    within(without.wait.mean, 7.0, 10.0);
    within(with.wait.mean, 0.0, 2.0);
    assert!(
        with.pods <= 6,
        "they come and go once a burst at the most: {}",
        with.pods
    );
}

/// A task waits for those before it, and its wait is counted from when they have ended.
#[test]
fn children_wait_for_their_parents_and_that_is_no_waiting() {
    let mut jobs = tasks(3, 0.0, 30.0, 1.0);
    jobs[1].after = vec![0];
    jobs[2].after = vec![1];
    let result = simulate(
        &cluster(&[("cpu", 1, 5, 1)]),
        &trace(jobs),
        &WorldSettings::default(),
        Strategy::Rayfit,
    );
    assert_eq!((result.jobs.ended, result.pods), (3, 1));
    within(result.endless_makespan, 90.0, 90.0);
    assert!(
        result.wait.p50 < 0.001,
        "only the first one waits: {:?}",
        result.wait
    );
}

/// The first task ends long before the second one, and the third one needs what both returned.
fn joined(output: u64) -> Trace {
    let mut jobs = tasks(3, 0.0, 10.0, 1.0);
    jobs[0].output = output;
    jobs[1].seconds = 300.0;
    jobs[2].after = vec![0, 1];
    trace(jobs)
}

#[test]
fn a_node_whose_objects_are_needed_is_not_idle() {
    let paid = |output: u64, strategy: Strategy| {
        let cluster = cluster(&[("cpu", 1, 5, 1)]);
        let world = WorldSettings::default();
        let result = simulate(&cluster, &joined(output), &world, strategy);
        assert_eq!((result.jobs.ended, result.pods), (3, 2));
        result.cpu_hours.paid * 3600.0
    };
    for strategy in [Strategy::Rayfit, Strategy::Ray] {
        // One pod works for 10 s and the other one for 310 s, and both are idle for 60 s at the end.
        within(paid(0, strategy), 440.0, 480.0);
        // What is small is kept by who submitted the task.
        within(paid(1 << 10, strategy), 440.0, 480.0);
        within(paid(1 << 20, strategy), 740.0, 780.0);
    }
}

/// Each pod has one core, so that at first a process has to be started on each. The tasks that follow
/// find one.
#[test]
fn the_first_task_of_a_node_waits_for_its_process() {
    let world = WorldSettings {
        worker_start_s: 3.0,
        ..WorldSettings::default()
    };
    let mut jobs = tasks(2, 0.0, 30.0, 1.0);
    jobs[1].after = vec![0];
    let run = |world: &WorldSettings| {
        let cluster = cluster(&[("cpu", 1, 1, 1)]);
        simulate(&cluster, &trace(jobs.clone()), world, Strategy::Rayfit)
    };
    let (at_once, later) = (run(&WorldSettings::default()), run(&world));
    within(later.makespan - at_once.makespan, 2.999, 3.001);
    within(later.wait.longest - at_once.wait.longest, 2.999, 3.001);
    within(later.wait.p50, 0.0, 0.001);
}

/// A pod that may grow does so instead of being joined by others, where that is the strategy of both.
#[test]
fn pods_grow_before_others_come() {
    let mut cluster = growing(&[("cpu", 1, 8, 1)], 4);
    cluster["spec"]["workerGroupSpecs"][0]["minReplicas"] = json!(1);
    cluster["spec"]["workerGroupSpecs"][0]["replicas"] = json!(1);
    let world = one_pool(pool(16, 1));
    for strategy in BOTH {
        let result = simulate(&cluster, &trace(tasks(4, 5.0, 60.0, 1.0)), &world, strategy);
        assert_eq!((result.jobs.ended, result.pods), (4, 0), "{result:?}");
        // Ray leaves the pod at the size to which it has grown.
        let resizes = if strategy == Strategy::Rayfit { 2 } else { 1 };
        assert_eq!(result.resizes, resizes, "{result:?}");
        within(result.wait.longest, 1.0, 13.0);
    }
}

/// Between two bursts a pod gives up what it does not use, and takes it back at once: the second
/// burst waits for no new pod, although Ray would have removed the pod by then.
#[test]
fn pods_shrink_between_bursts_and_grow_again() {
    let cluster = growing(&[("cpu", 1, 8, 1)], 8);
    let bursts = [tasks(8, 5.0, 30.0, 1.0), tasks(8, 160.0, 30.0, 1.0)].concat();
    let world = WorldSettings {
        pod_start_s: 40.0,
        ..WorldSettings::default()
    };
    let [rayfit, ray] =
        BOTH.map(|strategy| simulate(&cluster, &trace(bursts.clone()), &world, strategy));
    assert_eq!((rayfit.pods, ray.pods), (1, 2));
    assert_eq!((rayfit.harmed, ray.harmed), (0, 0));
    assert!(
        rayfit.wait.mean < 0.7 * ray.wait.mean,
        "{} {}",
        rayfit.wait.mean,
        ray.wait.mean
    );
    assert!(
        rayfit.cpu_hours.paid < 0.8 * ray.cpu_hours.paid,
        "{:?} {:?}",
        rayfit.cpu_hours,
        ray.cpu_hours
    );
    assert!(rayfit.gib_hours.paid < ray.gib_hours.paid);
}

/// A long task keeps the cores that it uses, while the rest of its pod is given up.
#[test]
fn a_pod_never_shrinks_below_what_runs_in_it() {
    let cluster = growing(&[("cpu", 2, 1, 1)], 8);
    let jobs = [tasks(1, 5.0, 300.0, 3.0), tasks(5, 5.0, 20.0, 1.0)].concat();
    let result = simulate(
        &cluster,
        &trace(jobs),
        &WorldSettings::default(),
        Strategy::Rayfit,
    );
    assert_eq!((result.jobs.ended, result.harmed), (6, 0), "{result:?}");
    let at = |seconds| cores_at(&result, seconds);
    assert_eq!((at(20.0), at(150.0)), (8.0, 4.0), "{result:?}");
}

/// Ray fails a task that waits once no node could hold it any more.
#[test]
fn a_pod_keeps_the_size_that_a_task_waits_for() {
    let mut jobs = tasks(1, 0.0, 10.0, 4.0);
    jobs.extend(tasks(3, 25.0, 60.0, 1.0));
    jobs.extend(tasks(1, 28.0, 5.0, 4.0));
    let world = WorldSettings::default();
    let cluster = growing(&[("cpu", 1, 1, 1)], 4);
    let result = simulate(&cluster, &trace(jobs), &world, Strategy::Rayfit);
    assert_eq!((result.jobs.ended, result.harmed), (5, 0), "{result:?}");
    within(result.makespan, 90.0, 92.0);
    // Nobody waits for its size after that.
    within(cores_at(&result, 115.0), 1.0, 1.0);
}

/// With new pods that are made as large as single tasks need, or without.
fn made(large: bool) -> PlanSettings {
    PlanSettings {
        initial_sizes: large.then_some(SizedFor::Request),
        ..PlanSettings::default()
    }
}

/// The scheduler puts a small pod on the small node, where it cannot grow to what the task needs.
#[test]
fn a_pod_is_made_as_large_as_its_task_so_that_it_gets_a_node_to_run_on() {
    let named = |name: &str, cores| NodePool {
        name: name.to_owned(),
        min: 0,
        ..pool(cores, 3)
    };
    let world = WorldSettings {
        pools: vec![named("a-small", 2), named("b-large", 5)],
        ..WorldSettings::default()
    };
    let cluster = growing(&[("cpu", 1, 4, 1)], 4);
    let trace = trace(tasks(2, 0.0, 30.0, 4.0));
    let large = simulate_with(&cluster, &trace, &world, made(true));
    assert_eq!(
        (large.jobs.ended, large.harmed, large.pods),
        (2, 0, 2),
        "{:?}",
        large.jobs
    );
    within(large.makespan, 90.0, 180.0);
    let small = simulate_with(&cluster, &trace, &world, made(false));
    assert_eq!(small.jobs.ended, 0, "{:?}", small.jobs);
}

/// Large pods that no node can hold are given up, and what fits smaller ones does not wait for ever.
#[test]
fn pods_that_are_too_large_for_every_node_keep_no_others_from_running() {
    let cluster = growing(&[("cpu", 1, 6, 1)], 4);
    let jobs = [tasks(1, 0.0, 30.0, 4.0), tasks(3, 0.0, 30.0, 1.0)].concat();
    let world = one_pool(pool(2, 4));
    let result = simulate_with(&cluster, &trace(jobs), &world, made(true));
    assert_eq!((result.jobs.ended, result.harmed), (3, 0), "{result:?}");
}

/// A pod with three cores as a whole grows to those and no further, with its request; what is beyond that
/// runs in another pod. Both levels come down again, so that less is paid for.
#[test]
fn a_pod_grows_within_what_it_has_as_a_whole() {
    let mut cluster = growing(&[("cpu", 1, 2, 1)], 4);
    let group = &mut cluster["spec"]["workerGroupSpecs"][0];
    (group["minReplicas"], group["replicas"]) = (json!(1), json!(1));
    group["template"]["spec"]["resources"] = json!({"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"cpu": "3", "memory": "16Gi"}});
    let jobs = [tasks(1, 5.0, 200.0, 1.0), tasks(3, 5.0, 40.0, 1.0)].concat();
    let result = simulate(
        &cluster,
        &trace(jobs),
        &WorldSettings::default(),
        Strategy::Rayfit,
    );
    assert_eq!((result.jobs.ended, result.pods), (4, 1), "{result:?}");
    let at = |seconds| cores_at(&result, seconds);
    // Its request stays a thousandth below its limit, or the pod would change its quality-of-service class.
    let cores = (at(4.0), at(35.0), at(190.0));
    assert_eq!(cores, (1.0, 2.999 + 1.0, 1.0 + 1.0), "{result:?}");
}

/// The one node has room for three cores more, and says so to who asks for more.
#[test]
fn growth_is_bounded_by_the_node() {
    let mut cluster = growing(&[("cpu", 1, 1, 1)], 8);
    cluster["spec"]["workerGroupSpecs"][0]["minReplicas"] = json!(1);
    cluster["spec"]["workerGroupSpecs"][0]["replicas"] = json!(1);
    let world = one_pool(pool(5, 1));
    let result = simulate(
        &cluster,
        &trace(tasks(8, 5.0, 10.0, 1.0)),
        &world,
        Strategy::Rayfit,
    );
    assert_eq!(result.jobs.ended, 8, "{result:?}");
    let most = result
        .curve
        .iter()
        .map(|point| point.cores)
        .fold(0.0, f64::max);
    within(most, 4.0, 4.0);
}

/// Nodes come for pods that fit nowhere, and go when they have been empty for long.
#[test]
fn nodes_come_and_go() {
    let world = one_pool(pool(4, 5));
    for strategy in BOTH {
        let result = simulate(
            &cluster(&[("cpu", 2, 10, 1)]),
            &trace(tasks(8, 5.0, 30.0, 1.0)),
            &world,
            strategy,
        );
        assert_eq!((result.jobs.ended, result.jobs.unfinished), (8, 0));
        within(result.wait.longest, 67.0, 90.0);
        let most = result
            .curve
            .iter()
            .map(|point| point.nodes)
            .fold(0.0, f64::max);
        within(most, 3.0, 3.0);
    }
}

/// What fits nowhere waits until the end, and hides nothing else.
#[test]
fn what_fits_nowhere_is_said() {
    let mut jobs = tasks(2, 0.0, 10.0, 1.0);
    jobs.extend(tasks(1, 0.0, 10.0, 64.0));
    let result = simulate(
        &cluster(&[("cpu", 2, 4, 1)]),
        &trace(jobs),
        &WorldSettings::default(),
        Strategy::Rayfit,
    );
    assert_eq!((result.jobs.ended, result.jobs.unfinished), (2, 1));
}

/// A placement group gets all of its bundles at once, each on a node of its own if it says so.
/// Only the time of looks that can see something new is spent on a trace of thirty years.
#[test]
fn years_in_which_nothing_happens_are_passed_over() {
    for strategy in BOTH {
        let far = trace([tasks(1, 0.0, 5e8, 1.0), tasks(1, 1e9, 30.0, 1.0)].concat());
        let result = simulate(
            &cluster(&[("cpu", 4, 2, 1)]),
            &far,
            &WorldSettings::default(),
            strategy,
        );
        assert_eq!((result.jobs.ended, result.jobs.unfinished), (2, 0));
        within(result.makespan, 1e9, 1e9 + 120.0);
    }
}

#[test]
fn a_task_that_no_pod_can_hold_is_not_tried_for_ever() {
    let mut grows = job(0.0, 1e9, JobDemand::Task(cpus(1.0)));
    grows.retries = u32::MAX;
    grows.memory = vec![MemoryUse {
        at: 1.0,
        bytes: 1 << 50,
    }];
    let jobs = trace([vec![grows], tasks(1, 0.0, 1e4, 1.0)].concat());
    let result = simulate(
        &cluster(&[("cpu", 4, 2, 1)]),
        &jobs,
        &WorldSettings::default(),
        Strategy::Rayfit,
    );
    assert_eq!((result.jobs.ended, result.jobs.lost), (1, 1));
}

/// A task that fits nowhere waits beside one that runs for thirty years.
#[test]
fn work_that_waits_for_years_is_refused() {
    for strategy in BOTH {
        let never = trace([tasks(1, 0.0, 1e9, 1.0), tasks(1, 0.0, 1.0, 99.0)].concat());
        let world = WorldSettings {
            most_rounds: 500,
            ..WorldSettings::default()
        };
        let mut reconciler = RoundSettings::default();
        reconciler.plan.strategy = strategy;
        let cluster = cluster(&[("cpu", 4, 2, 1)]);
        let refused = run(&cluster, &never, &world, reconciler, &mut |_| {});
        assert_eq!(refused.unwrap_err(), SimulationError::TooLong(500));
    }
}

#[test]
fn groups_that_nobody_could_simulate_are_refused() {
    let refusal = |change: &str, value: i64| {
        let mut cluster = cluster(&[("cpu", 4, 2_000_000_000, 1)]);
        cluster["spec"]["workerGroupSpecs"][0][change] = value.into();
        let (world, reconciler) = (WorldSettings::default(), RoundSettings::default());
        let jobs = trace(tasks(1, 0.0, 1.0, 1.0));
        let refused = run(&cluster, &jobs, &world, reconciler, &mut |_| {});
        refused.expect_err(change).to_string()
    };
    assert!(refusal("numOfHosts", 0).contains("write 1 or more"));
    assert!(refusal("numOfHosts", 5_000_000_000).contains("lower replicas"));
    assert!(refusal("replicas", 5_000_000_000).contains("lower replicas"));
    assert!(refusal("minReplicas", 2_000_000_000).contains("lower replicas"));
}

#[test]
fn placement_groups_are_served_whole() {
    use trace::PlacementStrategy::{Pack, Spread, StrictPack, StrictSpread};
    for (strategy, pods) in [(StrictSpread, 3), (StrictPack, 1), (Pack, 1), (Spread, 1)] {
        let bundles = vec![cpus(1.0); 3];
        let gang = JobDemand::PlacementGroup { strategy, bundles };
        let jobs = trace(vec![job(1.0, 20.0, gang)]);
        for way in BOTH {
            let result = simulate(
                &cluster(&[("cpu", 4, 6, 1)]),
                &jobs,
                &WorldSettings::default(),
                way,
            );
            assert_eq!(
                (result.jobs.ended, result.pods),
                (1, pods),
                "{strategy:?} {way:?}"
            );
        }
    }
}

/// Replicas of several hosts come and go as a whole.
#[test]
fn replicas_come_and_go_whole() {
    for strategy in BOTH {
        let result = simulate(
            &cluster(&[("tpu", 4, 4, 2)]),
            &trace(tasks(3, 1.0, 20.0, 4.0)),
            &WorldSettings::default(),
            strategy,
        );
        assert_eq!((result.jobs.ended, result.harmed), (3, 0));
        assert_eq!(result.pods % 2, 0);
        let last = result.curve.last().unwrap();
        within(last.cores, 0.0, 0.0);
    }
}

/// A thousand bursts: nothing is harmed, all ends, and the sums are those of the jobs.
#[test]
fn long_traces_lose_nothing() {
    let bursts = (0..part_of(120, 30)).flat_map(|burst| {
        let seconds = 20.0 + f64::from(burst % 7);
        tasks(20, f64::from(burst) * 90.0, seconds, 1.0)
    });
    let bursts = trace(bursts.collect());
    let world = WorldSettings {
        pools: vec![pool(16, 10)],
        pod_end_s: 1.0,
        ..WorldSettings::default()
    };
    let result = simulate(
        &growing(&[("cpu", 2, 30, 1)], 8),
        &bursts,
        &world,
        Strategy::Rayfit,
    );
    assert_eq!((result.jobs.ended, result.harmed), (bursts.jobs.len(), 0));
    let work: f64 = bursts.jobs.iter().map(|job| job.seconds).sum();
    within(result.cpu_hours.work * 3600.0, work - 0.1, work + 0.1);
    within(result.cpu_hours.paid, result.cpu_hours.work, f64::INFINITY);
}

/// A task in a pod of 4 GiB that climbs to 10 GiB, and frees most of it again.
fn climbing() -> Job {
    let climb = (0_u32..100).map(|second| (f64::from(second), 300 + 100 * u64::from(second)));
    let memory = climb
        .chain([(120.0, 800)])
        .map(|(at, mebibytes)| MemoryUse {
            at,
            bytes: mebibytes << 20,
        });
    Job {
        memory: memory.collect(),
        ..job(0.0, 300.0, JobDemand::Task(cpus(1.0)))
    }
}

/// A cluster whose pods may grow to 16 GiB and no more cores, with the memory monitor on or off.
fn growing_in_memory(monitor: bool) -> Value {
    let mut cluster = cluster(&[("cpu", 1, 1, 1)]);
    let limits = json!({"max-cpu": 1, "max-memory": "16Gi", "resize-timeout": 60});
    let annotation = json!({"groups": {"cpu": limits}}).to_string();
    cluster["metadata"]["annotations"] = json!({"ray.io/ippr": annotation});
    let refresh = if monitor { "250" } else { "0" };
    cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "RAY_memory_monitor_refresh_ms", "value": refresh}]);
    cluster
}

#[test]
fn a_pod_grows_with_the_memory_that_is_really_in_use_and_gives_it_back() {
    let settings = WorldSettings::default();
    let trace = trace(vec![climbing()]);
    let of = |cluster: &Value, strategy| simulate(cluster, &trace, &settings, strategy);

    let saved = of(&growing_in_memory(false), Strategy::Rayfit);
    assert_eq!((saved.out_of_memory, saved.jobs.ended), (0, 1));
    let mut keeps = climbing();
    keeps.memory.pop();
    let kept = simulate(
        &growing_in_memory(false),
        &self::trace(vec![keeps]),
        &settings,
        Strategy::Rayfit,
    );
    assert_eq!((kept.out_of_memory, kept.jobs.ended), (0, 1));
    // Two minutes of twelve GiB.
    within(kept.gib_hours.paid - saved.gib_hours.paid, 0.3, 0.5);

    // Three retries, and the kernel kills each time.
    let killed = of(&growing_in_memory(false), Strategy::Ray);
    assert_eq!((killed.out_of_memory, killed.jobs.lost), (4, 1));

    // The monitor of Ray 2.60 goes by the memory that the pod started with, and kills the only task for
    // good.
    let monitored = of(&growing_in_memory(true), Strategy::Rayfit);
    assert_eq!((monitored.out_of_memory, monitored.jobs.lost), (1, 1));
}

#[test]
fn the_monitor_kills_the_newest_and_tries_it_again_while_another_one_runs() {
    // Two tasks of 2.5 GiB in a pod of 4 GiB: one after the other they would fit.
    let hungry = |at: f64| Job {
        memory: vec![
            MemoryUse {
                at: 0.0,
                bytes: 1 << 30,
            },
            MemoryUse {
                at: 10.0,
                bytes: 5 << 29,
            },
        ],
        ..job(at, 30.0, JobDemand::Task(cpus(0.5)))
    };
    let trace = trace(vec![hungry(0.0), hungry(1.0)]);
    for strategy in BOTH {
        let result = simulate(
            &cluster(&[("cpu", 1, 1, 1)]),
            &trace,
            &WorldSettings::default(),
            strategy,
        );
        assert_eq!(result.jobs.ended, 2, "{strategy:?}");
        assert!((1..=3).contains(&result.out_of_memory), "{result:?}");
    }
}

#[test]
fn a_monitor_kills_only_when_it_checks_while_others_wait() {
    // Four of these fit on the core of the pod, and three in its memory.
    let hungry = Job {
        memory: vec![MemoryUse {
            at: 0.0,
            bytes: 1004 << 20,
        }],
        ..job(0.0, 20.0, JobDemand::Task(cpus(0.25)))
    };
    let trace = trace(vec![hungry; 40]);
    for strategy in BOTH {
        let result = simulate(
            &cluster(&[("cpu", 1, 1, 1)]),
            &trace,
            &WorldSettings::default(),
            strategy,
        );
        assert_eq!(result.jobs.ended, 40, "{strategy:?}");
        let starts = result.curve.iter().find(|point| point.used > 0.0);
        let starts = starts.unwrap().at;
        let first = result.curve.iter().skip_while(|point| point.at < starts);
        let first = first.take_while(|point| point.at < starts + 3.0);
        let waiting = first.map(|point| point.waiting_jobs);
        let fewest = waiting.fold(f64::INFINITY, f64::min);
        assert!(fewest > 20.0, "{strategy:?}: {fewest}");
    }
}
