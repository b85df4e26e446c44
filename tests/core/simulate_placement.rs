//! Simulations in which pods may not be on every Kubernetes node: labels and taints of pools, and gates.

use std::collections::BTreeMap;

use rayfit_core::facts::node::NodeTaint;
use rayfit_core::plan::{PlanSettings, Strategy};
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::result::SimulationResult;
use rayfit_core::simulate::run::run;
use rayfit_core::simulate::settings::{NodePool, WorldSettings};
use rayfit_core::simulate::trace::{Job, JobDemand, JobShape, Trace};
use rayfit_core::simulate::world::World;
use serde_json::{Value, json};

/// A pool of nodes of four cores.
fn pool(name: &str, labels: &[(&str, &str)], taints: &[&str]) -> NodePool {
    let text = |text: &&str| (*text).to_owned();
    let taint = |key: &&str| NodeTaint {
        key: text(key),
        value: String::new(),
        effect: "NoSchedule".to_owned(),
    };
    NodePool {
        name: name.to_owned(),
        allocatable: Amounts::new(Quantity::from_units(4), Quantity::from_units(16 << 30)),
        labels: labels
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect::<BTreeMap<_, _>>(),
        taints: taints.iter().map(taint).collect(),
        max: 3,
        start_s: 60.0,
        idle_s: 120.0,
        ..NodePool::default()
    }
}

/// A head of one core, and a worker group whose pods have two and these further fields.
fn cluster(fields: &Value) -> Value {
    let template = |name: &str, cores: i64, fields: &Value| {
        let size = json!({"cpu": cores.to_string(), "memory": format!("{}Gi", 4 * cores)});
        let mut spec = json!({"containers": [{"name": name, "image": "ray:2.60.0",
            "resources": {"limits": size, "requests": size}}]});
        json_patch::merge(&mut spec, fields);
        json!({"spec": spec})
    };
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "demo", "namespace": "ray"},
        "spec": {
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"},
                "template": template("ray-head", 1, &json!({}))},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 0, "minReplicas": 0, "maxReplicas": 6,
                "rayStartParams": {}, "template": template("ray-worker", 2, fields)}],
        },
    })
}

/// Four tasks of two cores each.
fn simulate(fields: &Value, pools: Vec<NodePool>) -> SimulationResult {
    simulate_tasks(&cluster(fields), pools, &[0.0; 4])
}

/// Tasks of two cores each, which are submitted at these times.
fn simulate_tasks(cluster: &Value, pools: Vec<NodePool>, at: &[f64]) -> SimulationResult {
    let job = |at: &f64| Job {
        id: String::new(),
        name: String::new(),
        at: *at,
        after: Vec::new(),
        seconds: 30.0,
        demand: JobDemand::Task(JobShape::from([("CPU".to_owned(), 2.0)])),
        memory: Vec::new(),
        output: 0,
        retries: 3,
    };
    let trace = Trace {
        name: "placement".to_owned(),
        jobs: at.iter().map(job).collect(),
    };
    let world = WorldSettings {
        pools,
        ..WorldSettings::default()
    };
    let reconciler = RoundSettings {
        plan: PlanSettings {
            strategy: Strategy::Rayfit,
            ..PlanSettings::default()
        },
        ..RoundSettings::default()
    };
    run(cluster, &trace, &world, reconciler, &mut |_| {}).unwrap()
}

/// The Kubernetes nodes that two workers of these fields are bound to within five minutes, and how many nodes
/// there are then; nobody scales the cluster.
fn bound(fields: &Value, pools: Vec<NodePool>) -> (Vec<String>, usize) {
    let mut cluster = cluster(fields);
    cluster["spec"]["workerGroupSpecs"][0]["replicas"] = json!(2);
    let trace = Trace {
        name: String::new(),
        jobs: Vec::new(),
    };
    let world = WorldSettings {
        pools,
        ..WorldSettings::default()
    };
    let mut world = World::new(&cluster, &trace, world).unwrap();
    while let Some(event) = world.advance()
        && world.now < Moment::at(300.0)
    {
        world.happen(event);
    }
    assert_eq!(world.workers().count(), 2);
    let nodes = world.workers();
    let nodes = nodes.filter_map(|pod| pod.object.spec.node_name.clone());
    (nodes.collect(), world.machines.nodes.len())
}

#[test]
fn pods_are_bound_to_nodes_that_they_select_and_no_others_come_for_them() {
    let pools = || {
        vec![
            pool("plain", &[], &[]),
            pool("zoned", &[("zone", "a")], &[]),
        ]
    };
    let required = |values: Value| {
        let term =
            json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]});
        json!({"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}})
    };
    let selected = json!({"nodeSelector": {"zone": "a"}});
    for fields in [&selected, &required(json!(["a", "b"]))] {
        // The head has a node of the first pool for itself.
        let (nodes, made) = bound(fields, pools());
        assert_eq!(
            (nodes, made),
            (vec!["zoned-1".to_owned(); 2], 2),
            "{fields}"
        );
    }
    assert_eq!(bound(&required(json!(["b"])), pools()), (Vec::new(), 1));
    let result = simulate(&selected, pools());
    assert_eq!(result.jobs.ended, 4);
}

#[test]
fn a_taint_keeps_off_who_does_not_tolerate_it() {
    let pools = || vec![pool("reserved", &[], &["team"]), pool("plain", &[], &[])];
    let (nodes, made) = bound(&json!({}), pools());
    assert!(
        nodes.iter().all(|node| node.starts_with("plain-")),
        "{nodes:?}"
    );
    assert_eq!((nodes.len(), made), (2, 2));
    let tolerates = json!({"tolerations": [{"key": "team", "operator": "Exists"}]});
    let (nodes, _) = bound(&tolerates, pools());
    assert!(
        nodes.iter().any(|node| node.starts_with("reserved-")),
        "{nodes:?}"
    );
}

/// Nobody removes the gates here. Nodes do not come for such pods either.
#[test]
fn a_pod_with_scheduling_gates_waits() {
    let gated = json!({"schedulingGates": [{"name": "queue"}]});
    assert_eq!(
        bound(&gated, vec![pool("plain", &[], &[])]),
        (Vec::new(), 1)
    );
}

/// The first worker on the head's node waits for its image; the second one comes when the first is gone.
#[test]
fn a_node_pulls_an_image_once() {
    let mut cluster = cluster(&json!({}));
    let worker = &mut cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0];
    worker["image"] = json!("worker:1");
    let waits = |cluster: &Value, image_pull_s: f64| {
        let pool = NodePool {
            image_pull_s,
            ..pool("plain", &[], &[])
        };
        let result = simulate_tasks(cluster, vec![pool], &[0.0, 600.0]);
        assert_eq!((result.jobs.ended, result.pods), (2, 2));
        (
            result.wait.longest,
            2.0 * result.wait.mean - result.wait.longest,
        )
    };
    let (usual, again) = waits(&cluster, 0.0);
    assert!(usual < 15.0 && again < 15.0, "{usual} {again}");
    let (first, again) = waits(&cluster, 100.0);
    assert!(
        (100.0..115.0).contains(&first) && again < 15.0,
        "{first} {again}"
    );
    // The head has pulled it already.
    let worker = &mut cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0];
    worker["image"] = json!("ray:2.60.0");
    let (first, _) = waits(&cluster, 100.0);
    assert!(first < 15.0, "{first}");
}
