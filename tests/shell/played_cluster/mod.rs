//! A RayCluster played: the API server, KubeRay, the kubelets, the GCS and the raylets, as far as
//! a scaler sees them. Nothing here knows the scaler; it is driven by calls and by time.
#![allow(unreachable_pub)]

pub mod api;
pub mod kubernetes;
pub mod ray;

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use rayfit::snapshot::gcs::ClusterResourceState;
use rayfit::snapshot::{API_VERSION, History, Snapshot};
use serde_json::{Map, Value, json};

/// 2026-01-14T12:00:00Z
pub const START: f64 = 1_768_392_000.0;

/// A worker group.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: &'static str,
    pub cpu: i64,
    pub min: i64,
    pub max: i64,
    pub hosts: i64,
    /// To how many cores its pods may grow.
    pub limit: Option<i64>,
}

/// How the world behaves.
#[derive(Debug, Clone)]
pub struct Setup {
    pub groups: Vec<Group>,
    /// Cores of each Kubernetes node.
    pub kube_nodes: Vec<i64>,
    /// The scaler knows the Kubernetes nodes.
    pub knows_nodes: bool,
    /// Every so many steps the scaler sees pods and cluster as they are; in between, as they were.
    pub watch_lag: u64,
    /// A Ray process that ends takes its pod along.
    pub pods_exit: bool,
}

/// A task, or an actor.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub cpu: f64,
    /// Seconds that it still runs; for ever without.
    pub left: Option<f64>,
}

/// Everything.
#[derive(Debug, Clone)]
pub struct World {
    pub setup: Setup,
    pub now: f64,
    pub cluster: Value,
    pub pods: BTreeMap<String, Value>,
    pub kube_nodes: Vec<Value>,
    pub rays: Vec<ray::RayNode>,
    pub waiting: Vec<Task>,
    /// What must never happen, and did.
    pub faults: Vec<String>,
    made: BTreeMap<String, usize>,
    seen: (Value, Vec<Value>, ClusterResourceState),
    steps: u64,
    names: u64,
    version: u64,
}

impl World {
    pub fn new(setup: Setup) -> Self {
        let kube_nodes = setup.kube_nodes.iter().enumerate().map(|(number, cpu)| {
            json!({
                "metadata": {"name": format!("node-{number}")},
                "status": {"allocatable": {"cpu": cpu.to_string(), "memory": format!("{}Gi", 2 * cpu)}},
            })
        });
        let kube_nodes = kube_nodes.collect();
        let cluster = ray_cluster(&setup.groups);
        let seen = (cluster.clone(), Vec::new(), ClusterResourceState::default());
        let mut world = Self {
            setup,
            now: START,
            cluster,
            pods: BTreeMap::new(),
            kube_nodes,
            rays: Vec::new(),
            waiting: Vec::new(),
            faults: Vec::new(),
            made: BTreeMap::new(),
            seen,
            steps: 0,
            names: 0,
            version: 1,
        };
        world.make_head();
        world.look();
        world
    }

    /// Time goes on.
    pub fn step(&mut self, seconds: f64) {
        self.now += seconds;
        self.steps += 1;
        self.kuberay();
        self.kubelets();
        self.raylets(seconds);
        self.look();
    }

    /// What the scaler sees from now on. The GCS hears of the raylets once a second, watches lag.
    fn look(&mut self) {
        let state = self.gcs_state();
        self.seen.2 = state;
        if self.steps.is_multiple_of(self.setup.watch_lag.max(1)) {
            self.seen.0 = self.cluster.clone();
            self.seen.1 = self.pods.values().cloned().collect();
        }
    }

    /// What the scaler sees.
    pub fn snapshot(&self, history: History) -> Snapshot {
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
        let time = Timestamp::from_millisecond((self.now * 1000.0) as i64).unwrap();
        let (ray_cluster, pods, gcs) = self.seen.clone();
        let nodes = self.setup.knows_nodes.then(|| self.kube_nodes.clone());
        let mut snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": API_VERSION, "kind": "Snapshot", "time": time.to_string(),
            "rayCluster": ray_cluster, "pods": pods, "nodes": nodes,
        }))
        .unwrap();
        snapshot.gcs = gcs;
        snapshot.history = history;
        snapshot
    }

    pub fn group(&self, name: &str) -> &Group {
        self.setup
            .groups
            .iter()
            .find(|group| group.name == name)
            .unwrap()
    }

    /// The part of the RayCluster that describes a group; nothing if the group was removed.
    pub fn spec(&self, name: &str) -> &Value {
        let specs = self.cluster["spec"]["workerGroupSpecs"].as_array().unwrap();
        let spec = specs.iter().find(|spec| spec["groupName"] == name);
        spec.unwrap_or(&Value::Null)
    }

    /// Somebody removes a group.
    pub fn remove_group(&mut self, name: &str) {
        let specs = self.cluster["spec"]["workerGroupSpecs"].as_array_mut();
        specs.unwrap().retain(|spec| spec["groupName"] != name);
        self.bump();
    }

    /// How many pods of a group there ever were.
    pub fn made(&self, group: &str) -> usize {
        self.made.get(group).copied().unwrap_or(0)
    }

    /// Somebody edits a group.
    pub fn edit(&mut self, name: &str, key: &str, value: i64) {
        let specs = self.cluster["spec"]["workerGroupSpecs"]
            .as_array_mut()
            .unwrap();
        let spec = specs
            .iter_mut()
            .find(|spec| spec["groupName"] == name)
            .unwrap();
        spec[key] = json!(value);
        self.bump();
    }

    fn bump(&mut self) {
        self.version += 1;
        self.cluster["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }

    /// Something runs that will end.
    pub fn works(&self) -> bool {
        let mut running = self.rays.iter().filter(|ray| !ray.dead);
        running.any(|ray| ray.tasks.iter().any(|task| task.left.is_some()))
    }

    /// The end of a story, without names and dates.
    pub fn outcome(&self) -> Value {
        let mut groups = Map::new();
        for group in &self.setup.groups {
            let of = |pod: &&Value| pod["metadata"]["labels"]["ray.io/group"] == group.name;
            let mut sizes: Vec<String> = self
                .pods
                .values()
                .filter(of)
                .map(|pod| {
                    let spec = &pod["spec"]["containers"][0]["resources"]["limits"];
                    let given = &pod["status"]["containerStatuses"][0]["resources"]["limits"];
                    let name = pod["metadata"]["name"].as_str().unwrap();
                    let raylet = self.rays.iter().find(|ray| ray.pod == name && !ray.dead);
                    let raylet = raylet.map(|ray| ray.cpu);
                    format!(
                        "wants {}, has {}, Ray has {raylet:?}",
                        spec["cpu"], given["cpu"]
                    )
                })
                .collect();
            sizes.sort();
            let spec = self.spec(group.name);
            let listed = spec["scaleStrategy"]["workersToDelete"].as_array();
            groups.insert(
                group.name.to_owned(),
                json!({
                    "replicas": spec["replicas"],
                    "pods": sizes,
                    "to delete": listed.map_or(0, Vec::len),
                }),
            );
        }
        json!({"groups": groups, "waiting": self.waiting.len()})
    }
}

fn ray_cluster(groups: &[Group]) -> Value {
    let limits: Map<String, Value> = groups
        .iter()
        .filter_map(|group| {
            let limit = group.limit?;
            let memory = format!("{}Gi", 2 * limit);
            let limits = json!({"max-cpu": limit, "max-memory": memory, "resize-timeout": 60});
            Some((group.name.to_owned(), limits))
        })
        .collect();
    let workers: Vec<Value> = groups
        .iter()
        .map(|group| {
            json!({
                "groupName": group.name,
                "replicas": group.min,
                "minReplicas": group.min,
                "maxReplicas": group.max,
                "numOfHosts": group.hosts,
                "rayStartParams": {},
                "template": {"spec": {"containers": [container("worker", group.cpu)]}},
            })
        })
        .collect();
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "demo", "namespace": "ray", "resourceVersion": "1",
            "annotations": {
                "rayfit.dev/reconcile": "central",
                "ray.io/ippr": json!({ "groups": limits }).to_string(),
            },
        },
        "spec": {
            "enableInTreeAutoscaling": true,
            "autoscalerOptions": {"version": "v2", "idleTimeoutSeconds": 5},
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0"},
                "template": {"spec": {"containers": [container("head", 1)]}},
            },
            "workerGroupSpecs": workers,
        },
    })
}

pub fn container(name: &str, cpu: i64) -> Value {
    let size = json!({"cpu": cpu.to_string(), "memory": format!("{}Gi", 2 * cpu)});
    json!({"name": name, "image": "ray:2.60.0", "resources": {"limits": size, "requests": size}})
}
