//! What the demand or the RayCluster of one tenant could do to the process that decides for all.
//! Memory is counted for the thread that decides, whatever else runs.

use rayfit_core::plan::check::check;
use rayfit_core::plan::{Plan, PlanSettings, PlanWait, Strategy, decide};
use rayfit_core::snapshot::Snapshot;
use serde_json::{Value, json};

const STRATEGIES: [Strategy; 2] = [Strategy::Rayfit, Strategy::Ray];

/// In a debug build, on a machine that does much else.
const SOON_S: f64 = 30.0;

pub(crate) fn settings(strategy: Strategy) -> PlanSettings {
    PlanSettings {
        strategy,
        ..PlanSettings::default()
    }
}

pub(crate) fn group(name: &str, cpu: u32) -> Value {
    let amounts = json!({"cpu": cpu, "memory": "4Gi"});
    let container = json!({"name": "ray", "resources": {"requests": amounts, "limits": amounts}});
    json!({
        "groupName": name, "replicas": 0, "minReplicas": 0, "maxReplicas": 2_147_483_647_i64,
        "rayStartParams": {}, "template": {"spec": {"containers": [container]}},
    })
}

fn node_id(name: &str) -> String {
    let id: Vec<u8> = name.bytes().cycle().take(28).collect();
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, id)
}

fn pod(name: &str, group: &str) -> Value {
    let role = if group == "headgroup" {
        "head"
    } else {
        "worker"
    };
    json!({
        "metadata": {"name": name, "namespace": "team", "labels": {
            "ray.io/cluster": "demo", "ray.io/node-type": role, "ray.io/group": group}},
        "spec": {"containers": [{"name": "ray"}]}, "status": {"phase": "Running"},
    })
}

fn ray_node(name: &str, group: &str, total: &Value) -> Value {
    json!({
        "nodeId": node_id(name), "instanceId": name, "rayNodeTypeName": group, "status": "IDLE",
        "idleDurationMs": "9000000", "totalResources": total, "availableResources": total,
    })
}

/// A cluster whose head runs, with these groups.
pub(crate) fn cluster(groups: Vec<Value>) -> Value {
    let head = json!({"resources": {"limits": {"cpu": 1, "memory": "2Gi"}}});
    json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": {"metadata": {"name": "demo", "namespace": "team"}, "spec": {
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [head]}}},
            "workerGroupSpecs": groups,
        }},
        "pods": [pod("head", "headgroup")],
        "gcs": {"nodeStates": [ray_node("head", "headgroup", &json!({"node:__internal_head__": 1}))]},
    })
}

fn with_workers(count: usize) -> Value {
    let mut snapshot = cluster(vec![group("cpu", 4)]);
    for number in 0..count {
        let name = format!("w-{number}");
        let total = json!({"CPU": 4.0, "memory": 4e9, format!("own-{number}"): 1.0});
        snapshot["pods"]
            .as_array_mut()
            .unwrap()
            .push(pod(&name, "cpu"));
        let nodes = snapshot["gcs"]["nodeStates"].as_array_mut().unwrap();
        nodes.push(ray_node(&name, "cpu", &total));
    }
    snapshot["rayCluster"]["spec"]["workerGroupSpecs"][0]["replicas"] = json!(count);
    snapshot
}

pub(crate) fn tasks(snapshot: &mut Value, bundle: &Value, count: i64) {
    let request = json!({"request": {"resourcesBundle": bundle}, "count": count.to_string()});
    let pending = &mut snapshot["gcs"]["pendingResourceRequests"];
    match pending.as_array_mut() {
        Some(list) => list.push(request),
        None => *pending = json!([request]),
    }
}

pub(crate) fn read(snapshot: Value) -> Snapshot {
    serde_json::from_value(snapshot).unwrap()
}

/// The plan, and the most memory that was in use at once for it.
fn decided(snapshot: &Snapshot, settings: &PlanSettings) -> (Plan, u64) {
    let began = own_cpu_s();
    let mut plan = Plan::default();
    let used = allocation_counter::measure(|| plan = decide(snapshot, settings).0);
    let took = own_cpu_s() - began;
    assert!(took < SOON_S, "{took} s");
    (plan, used.bytes_max)
}

fn says(plan: &Plan, what: &str) -> bool {
    plan.problems
        .iter()
        .any(|problem| problem.at.to_string().contains(what))
}

#[test]
fn tasks_of_next_to_nothing_take_no_time() {
    for strategy in STRATEGIES {
        let mut snapshot = cluster(vec![group("cpu", 4)]);
        tasks(&mut snapshot, &json!({"CPU": 1e-300}), i64::MAX);
        tasks(
            &mut snapshot,
            &json!({"CPU": 0.0001, "memory": 1}),
            i64::MAX,
        );
        tasks(&mut snapshot, &json!({}), i64::MAX);
        let (plan, memory) = decided(&read(snapshot), &settings(strategy));
        assert!(plan.groups[0].launch >= 1);
        assert!(memory < 8 << 20, "{memory}");
    }
}

#[test]
fn replicas_beyond_reason_cost_what_one_costs() {
    for (strategy, field) in [
        (Strategy::Rayfit, "replicas"),
        (Strategy::Ray, "replicas"),
        (Strategy::Rayfit, "minReplicas"),
        (Strategy::Ray, "minReplicas"),
    ] {
        let with = |count: i64| {
            let mut snapshot = cluster(vec![group("cpu", 4)]);
            snapshot["rayCluster"]["spec"]["workerGroupSpecs"][0][field] = json!(count);
            decided(&read(snapshot), &settings(strategy))
        };
        let ((_, few), (plan, many)) = (with(1), with(2_147_483_647));
        assert!(many < few + (1 << 20), "{field}: {few} and {many}");
        let asked = plan.groups[0].launch_now;
        assert!(asked <= 10_000, "{asked}");
    }
}

#[test]
fn a_launch_of_a_million_costs_what_one_costs() {
    for strategy in STRATEGIES {
        let with = |count: i64| {
            let mut snapshot = cluster(vec![group("cpu", 4), group("big", 32)]);
            tasks(&mut snapshot, &json!({"CPU": 4}), count);
            let settings = PlanSettings {
                max_workers: u64::MAX,
                ..settings(strategy)
            };
            decided(&read(snapshot), &settings)
        };
        let ((_, few), (plan, many)) = (with(1), with(1_000_000));
        let launch: u64 = plan.groups.iter().map(|group| group.launch).sum();
        assert_eq!(
            launch,
            if plan.groups[0].launch > 0 {
                1_000_000
            } else {
                125_000
            }
        );
        assert!(many < few + (1 << 20), "{few} and {many}");
        assert!(plan.remember.instances.len() <= 4);
        assert_eq!(plan.problems, []);
    }
}

#[test]
fn no_demand_takes_a_cluster_beyond_its_limit() {
    let ask = |bundle: Value| json!([{"resourceRequests": [{"request": {"resourcesBundle": bundle}, "count": "100000000"}]}]);
    for strategy in STRATEGIES {
        let mut asked = cluster(vec![group("cpu", 4)]);
        asked["gcs"]["clusterResourceConstraints"] = ask(json!({"CPU": 1}));
        let (plan, memory) = decided(&read(asked), &settings(strategy));
        assert!(says(&plan, "workers"), "{plan}");
        assert!(plan.unmet[0].why(usize::MAX).contains("10000"), "{plan}");
        assert!(memory < 8 << 20, "{memory}");

        let mut waiting = cluster(vec![group("cpu", 4)]);
        tasks(&mut waiting, &json!({"CPU": 4}), 1_000_000);
        let (plan, memory) = decided(&read(waiting), &settings(strategy));
        assert_eq!(plan.groups[0].launch, 10_000);
        assert!(
            plan.to_string().contains("reconcile.maxWorkersPerCluster"),
            "{plan}"
        );
        assert!(memory < 8 << 20, "{memory}");
    }
}

#[test]
fn the_limit_of_workers_takes_none_away() {
    let mut snapshot = with_workers(30);
    snapshot["rayCluster"]["spec"]["workerGroupSpecs"][0]["minReplicas"] = json!(30);
    tasks(&mut snapshot, &json!({"CPU": 4}), 100);
    for strategy in STRATEGIES {
        let few = PlanSettings {
            max_workers: 10,
            ..settings(strategy)
        };
        let (plan, _) = decided(&read(snapshot.clone()), &few);
        assert!(
            plan.drains.is_empty() && plan.groups[0].delete.is_empty(),
            "{plan}"
        );
        assert_eq!(
            (plan.groups[0].launch, plan.groups[0].replicas),
            (0, 30),
            "{plan}"
        );
        assert!(says(&plan, "workers"), "{plan}");
    }
}

#[test]
fn a_decision_that_costs_too_much_is_none() {
    let mut snapshot = with_workers(1_500);
    for number in 0..6_000 {
        // On every node something of each, so that none is ever like another.
        let amounts = json!({"CPU": 0.0003 + f64::from(number) * 0.0001, "memory": 1});
        tasks(&mut snapshot, &amounts, 1);
    }
    for node in snapshot["gcs"]["nodeStates"].as_array_mut().unwrap() {
        let name = node["instanceId"].as_str().unwrap().to_owned();
        node["availableResources"]["CPU"] = json!(1.0 + 0.001 * name.len() as f64);
        let own: f64 = name
            .bytes()
            .map(f64::from)
            .fold(0.0, |sum, byte| sum * 3.0 + byte);
        node["availableResources"]["memory"] = json!(1e9 + own);
    }
    snapshot["history"]["growthBackoffs"] = json!({"cpu": {"failures": 1, "at": 1_768_391_000.0}});
    let snapshot = read(snapshot);
    for strategy in STRATEGIES {
        let (plan, memory) = decided(&snapshot, &settings(strategy));
        assert!(
            plan.waiting.is_some() && says(&plan, "demand"),
            "{}",
            plan.problems.len()
        );
        assert!(plan.drains.is_empty() && plan.resizes.is_empty() && plan.notes.is_empty());
        let same =
            |group: &rayfit_core::plan::GroupPlan| Some(group.replicas) == group.replicas_now;
        assert!(plan.groups.iter().all(same) && plan.is_quiet());
        assert_eq!(plan.remember, snapshot.history, "nothing is forgotten");
        assert_eq!(check(&snapshot, &plan), []);
        assert!(memory < 256 << 20, "{memory}");
    }
}

/// The CPU time of this thread, in seconds, which does not depend on what else runs.
fn own_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: f64 = stat.split_whitespace().next().unwrap().parse().unwrap();
    nanoseconds / 1e9
}

#[test]
fn many_groups_cost_little_more_than_in_proportion() {
    let time = |count: usize| {
        let groups = (0..count)
            .map(|number| group(&format!("g-{number}"), 4))
            .collect();
        let mut snapshot = cluster(groups);
        tasks(&mut snapshot, &json!({"CPU": 64}), 5);
        let snapshot = read(snapshot);
        let once = || {
            let began = own_cpu_s();
            assert_eq!(decide(&snapshot, &PlanSettings::default()).0.unmet.len(), 1);
            own_cpu_s() - began
        };
        (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
    };
    let (few, many) = (time(1_500), time(12_000));
    assert!(
        many < 30.0 * few,
        "8 times the groups: {few} s and {many} s of CPU"
    );
}

#[test]
fn numbers_at_their_ends_are_decided_on() {
    for strategy in STRATEGIES {
        let mut groups = vec![group("cpu", 4), group("tpu", 4)];
        for group in &mut groups {
            for field in [
                "replicas",
                "minReplicas",
                "maxReplicas",
                "numOfHosts",
                "priority",
            ] {
                group[field] = json!(i64::MAX);
            }
        }
        let mut snapshot = cluster(groups);
        for amount in [1e300, f64::MIN_POSITIVE, -1.0, 0.0] {
            tasks(
                &mut snapshot,
                &json!({"CPU": amount, "GPU": amount}),
                i64::MAX,
            );
        }
        let launch = json!({"group": "cpu", "status": "Queued", "count": u64::MAX});
        snapshot["history"]["instances"] = json!([launch, launch]);
        let snapshot = read(snapshot);
        for pending_idle_timeout_s in [None, Some(1.0)] {
            let settings = PlanSettings {
                pending_idle_timeout_s,
                ..settings(strategy)
            };
            let (_, memory) = decided(&snapshot, &settings);
            assert!(memory < 16 << 20, "{memory}");
        }
    }
}

/// A GCS belongs to a tenant, and so do resize limits: no number of theirs ends the decision.
#[test]
fn idle_times_and_resize_limits_at_their_ends_are_decided_on() {
    const NOTE: &str = r#"{"raylet-id":null,"resizing-at":null,"suggested-max-cpu":null,
        "suggested-max-memory":null,"last-failed-at":null,"last-failed-reason":null}"#;
    for strategy in STRATEGIES {
        let mut snapshot = cluster(vec![group("cpu", 3)]);
        let total = json!({"CPU": 1, "memory": 1024});
        for (name, idle_ms) in [("w-1", i64::MIN), ("w-2", i64::MAX), ("w-3", 0)] {
            let mut resized = pod(name, "cpu");
            resized["metadata"]["annotations"] = json!({"ray.io/ippr-status": NOTE});
            resized["spec"]["nodeName"] = json!("node-a");
            let mut node = ray_node(name, "cpu", &total);
            node["idleDurationMs"] = json!(idle_ms.to_string());
            snapshot["pods"].as_array_mut().unwrap().push(resized);
            let nodes = snapshot["gcs"]["nodeStates"].as_array_mut().unwrap();
            nodes.push(node);
        }
        // One more waits for room, for which idle pods go.
        let mut waits = pod("w-4", "cpu");
        waits["status"] = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        snapshot["pods"].as_array_mut().unwrap().push(waits);
        snapshot["nodes"] = json!([{"metadata": {"name": "node-a"},
            "status": {"allocatable": {"cpu": 3, "memory": "8Gi"}}}]);
        let limits = json!({"max-cpu": "9e18", "max-memory": "7Ei", "resize-timeout": 300});
        snapshot["rayCluster"]["metadata"]["annotations"] =
            json!({"ray.io/ippr": json!({"groups": {"cpu": limits}}).to_string()});
        tasks(&mut snapshot, &json!({"CPU": 1}), 9);
        decided(&read(snapshot), &settings(strategy));
    }
}

/// A tenant asks for placement groups that no pod could hold at any size: each of them is tried on every
/// pod that may grow, but on no two that are alike.
#[test]
fn placement_groups_that_nothing_can_serve_leave_a_decision() {
    let mut snapshot = cluster(vec![group("cpu", 4)]);
    let limits = json!({"max-cpu": "8", "max-memory": "16Gi", "resize-timeout": 300});
    snapshot["rayCluster"]["metadata"]["annotations"] =
        json!({"ray.io/ippr": json!({"groups": {"cpu": limits}}).to_string()});
    let busy = json!({"CPU": 4.0, "memory": 8e9});
    for number in 0..600 {
        let name = format!("w-{number}");
        let mut grows = pod(&name, "cpu");
        grows["spec"] = json!({"nodeName": "node-a", "containers": [{"name": "ray", "resources": {
            "requests": {"cpu": 4, "memory": "8Gi"}, "limits": {"cpu": 4, "memory": "8Gi"}}}]});
        snapshot["pods"].as_array_mut().unwrap().push(grows);
        let mut node = ray_node(&name, "cpu", &busy);
        node["availableResources"] = json!({});
        node["status"] = json!("RUNNING");
        let nodes = snapshot["gcs"]["nodeStates"].as_array_mut().unwrap();
        nodes.push(node);
    }
    snapshot["nodes"] = json!([{"metadata": {"name": "node-a"},
        "status": {"allocatable": {"cpu": 10_000, "memory": "100Ti"}}}]);
    let bundle = json!({"resourcesBundle": {"CPU": 100.0}});
    let gang = json!({"requests": [bundle, bundle]});
    snapshot["gcs"]["pendingGangResourceRequests"] = json!(vec![gang; 500]);
    let (plan, _) = decided(&read(snapshot), &settings(Strategy::Rayfit));
    assert!(plan.waiting.is_none(), "{:?}", plan.waiting);
    assert!(!plan.unmet.is_empty());
}

/// The cluster of one worker, in whose pod Ray nodes of these statuses, idle times and free CPUs run.
fn with_raylets(raylets: &[(&str, i64, f64)]) -> Value {
    let mut snapshot = with_workers(1);
    snapshot["rayCluster"]["spec"]["workerGroupSpecs"][0]["maxReplicas"] = json!(1);
    let nodes = snapshot["gcs"]["nodeStates"].as_array_mut().unwrap();
    nodes.truncate(1);
    for (number, (status, idle, free)) in raylets.iter().enumerate() {
        let mut node = ray_node("w-0", "cpu", &json!({"CPU": 4.0, "memory": 4e9}));
        node["nodeId"] = json!(node_id(&format!("raylet-{number}-")));
        node["status"] = json!(status);
        node["idleDurationMs"] = json!(idle.to_string());
        node["availableResources"]["CPU"] = json!(free);
        nodes.push(node);
    }
    snapshot
}

/// As after the container of a pod began anew, or where somebody starts a second raylet in it.
#[test]
fn several_raylets_in_a_pod_are_one_node_in_whatever_order_they_are_reported() {
    let busy = ("RUNNING", 0, 1.0);
    let idle = ("IDLE", 9_000_000, 4.0);
    let (draining, dead) = (("DRAINING", 5, 4.0), ("DEAD", 0, 0.0));
    for (raylets, drained) in [
        ([busy, idle], 0),
        ([busy, draining], 0),
        ([busy, dead], 0),
        ([idle, idle], 1),
        ([idle, draining], 1),
        ([draining, dead], 0),
    ] {
        let snapshot = with_raylets(&raylets);
        let mut turned = snapshot.clone();
        let nodes = turned["gcs"]["nodeStates"].as_array_mut().unwrap();
        nodes[1..].reverse();
        let settings = settings(Strategy::Rayfit);
        let (plan, _) = decide(&read(snapshot), &settings);
        let (other, _) = decide(&read(turned), &settings);
        assert_eq!(json!(plan), json!(other), "{raylets:?}");
        assert_eq!(plan.drains.len(), drained, "{raylets:?}: {plan:?}");
        let group = &plan.groups[0];
        assert_eq!((group.replicas, group.launch), (1, 0), "{raylets:?}");
        assert_eq!(group.delete, [], "{raylets:?}");
    }
}

/// What its GCS tells while the head is away may be half of it. Nothing is done, and once the head
/// runs everything is.
#[test]
fn pods_of_raylets_that_stopped_wait_for_the_head() {
    let mut snapshot = with_raylets(&[("DEAD", 0, 0.0)]);
    let back = decide(&read(snapshot.clone()), &settings(Strategy::Rayfit)).0;
    let gone: Vec<&str> = back.groups[0].deletions().map(|gone| &*gone.pod).collect();
    assert_eq!((gone, back.groups[0].replicas), (vec!["w-0"], 0));
    snapshot["gcs"]["nodeStates"][0]["status"] = json!("DRAINING");
    let away = decide(&read(snapshot), &settings(Strategy::Rayfit)).0;
    assert_eq!(away.waiting, Some(PlanWait::NoHead));
    assert_eq!(away.groups[0].deletions().count(), 0);
    assert_eq!(away.groups[0].replicas, 1);
}
