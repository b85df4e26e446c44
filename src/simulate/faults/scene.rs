//! The cluster, the jobs and the world of a seed: small ones, so that many can be tried.

use serde_json::{Value, json};

use crate::quantity::Quantity;
use crate::reconcile::ReconcilerSettings;
use crate::reconcile::settings::Pace;
use crate::simulate::settings::{NodePool, WorldSettings};
use crate::simulate::trace::{Demand, Job, Shape, Strategy, Trace};
use crate::snapshot::amounts::Amounts;

/// Where a plan of faults is tried.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The RayCluster.
    pub cluster: Value,
    /// Its worker groups.
    pub groups: [SceneGroup; 2],
    /// The jobs.
    pub trace: Trace,
    /// How the world behaves.
    pub world: WorldSettings,
    /// How the cluster is scaled.
    pub reconciler: ReconcilerSettings,
    /// For how long idle workers are kept, in seconds.
    pub idle_s: f64,
}

/// A worker group.
#[derive(Debug, Clone)]
pub struct SceneGroup {
    /// Its name.
    pub name: &'static str,
    /// The cores of a pod.
    pub cores: i64,
    /// The cores up to which a pod may grow, if it may.
    pub most_cores: Option<i64>,
    /// The fewest replicas.
    pub min: i64,
    /// The most replicas.
    pub max: i64,
    /// The pods of a replica.
    pub hosts: i64,
}

impl Scene {
    /// The scene of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x005C_E4E0);
        let grows = random.bool();
        let groups = [
            SceneGroup {
                name: "small",
                cores: 1,
                most_cores: Some(random.i64(2..=4)),
                min: random.i64(0..=1),
                max: random.i64(3..=6),
                hosts: 1,
            },
            SceneGroup {
                name: "large",
                cores: 2,
                most_cores: grows.then_some(4),
                min: 0,
                max: random.i64(1..=3),
                hosts: if random.usize(..5) == 0 { 2 } else { 1 },
            },
        ];
        let idle_s = f64::from(random.u32(10..=40));
        let jobs = (0..random.usize(20..=40))
            .map(|_| job(&mut random))
            .collect();
        let cores = random.i64(6..=16);
        let mut reconciler = ReconcilerSettings::default();
        // Fewer looks make more seeds in the same time. Changes of objects lead to looks at once.
        reconciler.pace = Pace {
            busy_s: 1.0,
            calm_s: 2.0,
            ..reconciler.pace
        };
        if random.usize(..4) == 0 {
            reconciler.plan.max_workers = random.u64(4..=6);
        }
        Self {
            cluster: cluster(&groups, idle_s),
            groups,
            trace: Trace {
                name: "faults".to_owned(),
                jobs,
            },
            world: WorldSettings {
                seed,
                pod_end_s: random.bool().then_some(1.0),
                pools: vec![pool(cores)],
                ..WorldSettings::default()
            },
            reconciler,
            idle_s,
        }
    }
}

fn job(random: &mut fastrand::Rng) -> Job {
    let cpus = [0.5, 1.0, 1.0, 2.0][random.usize(..4)];
    let shape = Shape::from([("CPU".to_owned(), cpus)]);
    let demand = match random.usize(..10) {
        0 => Demand::PlacementGroup {
            strategy: Strategy::Pack,
            bundles: vec![shape; 2],
        },
        1 | 2 => Demand::Actor(shape),
        _ => Demand::Task(shape),
    };
    Job {
        id: String::new(),
        name: String::new(),
        at: f64::from(random.u32(..240)),
        after: Vec::new(),
        seconds: f64::from(random.u32(3..60)),
        demand,
        memory: Vec::new(),
        // Whoever loses a node tries again.
        retries: 1000,
    }
}

fn pool(cores: i64) -> NodePool {
    NodePool {
        name: "pool".to_owned(),
        allocatable: Amounts::new(
            Quantity::from_units(cores),
            Quantity::from_units((4 * cores) << 30),
        ),
        gpus: 0,
        min: 1,
        max: 5,
        start_s: 20.0,
        idle_s: 60.0,
    }
}

fn container(name: &str, cores: i64) -> Value {
    let size = json!({"cpu": cores.to_string(), "memory": format!("{}Gi", 4 * cores)});
    json!({"name": name, "image": "ray:2.60.0", "resources": {"limits": size, "requests": size}})
}

fn cluster(groups: &[SceneGroup], idle_s: f64) -> Value {
    let group = |group: &SceneGroup| {
        json!({
            "groupName": group.name, "replicas": group.min, "minReplicas": group.min,
            "maxReplicas": group.max, "numOfHosts": group.hosts, "rayStartParams": {},
            "template": {"spec": {"containers": [container("ray-worker", group.cores)]}},
        })
    };
    let growing = groups.iter().filter_map(|group| {
        let most = group.most_cores?;
        let memory = format!("{}Gi", 4 * most);
        let limits = json!({"max-cpu": most, "max-memory": memory, "resize-timeout": 30});
        Some((group.name.to_owned(), limits))
    });
    let growing: serde_json::Map<String, Value> = growing.collect();
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {
            "name": "demo", "namespace": "ray",
            "annotations": {"ray.io/ippr": json!({"groups": growing}).to_string()},
        },
        "spec": {
            "autoscalerOptions": {"idleTimeoutSeconds": idle_s},
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0"},
                "template": {"spec": {"containers": [container("ray-head", 1)]}},
            },
            "workerGroupSpecs": groups.iter().map(group).collect::<Vec<_>>(),
        },
    })
}
