//! The real controller at a played API server, and Ray clusters that want to grow.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rayfit::apiserver::{ApiServer, Informers, Watches};
use rayfit::controller::observe::WatchScope;
use rayfit::controller::tuning::InForce;
use rayfit::controller::{ControllerOptions, Surroundings, run};
use rayfit::reconcile::ownership::lease::record::Terms;
use rayfit::supervisor::Supervisor;
use rayfit::telemetry::Metrics;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::api::{Api, Played};
use crate::play_gcs::{self, PlayedGcs, messages, rpc};

pub const CLUSTERS: &str = "/apis/ray.io/v1/rayclusters";
pub const PODS: &str = "/api/v1/pods";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

/// Waits for what must come; the bound is for what is broken, not a measure.
pub async fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(40), waiting).await;
    assert!(waited.is_ok(), "still waiting: {what}");
}

/// A controller that runs, and what it tells.
pub struct Controller {
    pub metrics: Arc<Metrics>,
    pub supervisor: Supervisor,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Controller {
    pub fn start(api: &Api) -> Self {
        Self::with(api.server(), "a", 2)
    }

    /// A replica of this name that divides clusters into so many shards.
    pub fn with(server: ApiServer, replica: &str, shards: u32) -> Self {
        let metrics = Arc::new(Metrics::new(Arc::default()));
        let supervisor = Supervisor::default();
        let around = Surroundings {
            in_force: InForce {
                known: Arc::new(AtomicBool::new(true)),
                ..InForce::default()
            },
            metrics: metrics.scaling.clone(),
            informers: Informers::new(server.client(), metrics.watches.clone()),
            supervisor: supervisor.clone(),
            api: server,
        };
        let options = ControllerOptions {
            reach: WatchScope::Everything,
            lease_namespace: "rayfit-system".to_owned(),
            replica: replica.to_owned(),
            shards,
            terms: Terms {
                duration: Duration::from_secs(6),
                renew: Duration::from_secs(1),
                margin: Duration::from_secs(1),
            },
            rate: 200,
            burst: 400,
            image: "rayfit".to_owned(),
        };
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(options, around, stopped));
        Self {
            metrics,
            supervisor,
            stop,
            task,
        }
    }

    /// As a SIGTERM does it.
    pub async fn stop(self) {
        self.supervisor.let_end();
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }

    pub fn watches(&self) -> Watches {
        self.metrics.watches.clone()
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.text().unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .parse()
            .unwrap()
    }
}

/// A Ray cluster of which two tasks wait for a worker each.
pub struct Cluster {
    played: Played,
    pub gcs: PlayedGcs,
    namespace: &'static str,
    name: String,
}

impl Cluster {
    pub async fn new(api: &Api, namespace: &'static str, name: &str) -> Self {
        let gcs = PlayedGcs::start(play_gcs::Played {
            state: waiting(2, &format!("{name}-head")),
            ..play_gcs::Played::default()
        })
        .await;
        let cluster = Self {
            played: api.played.clone(),
            gcs,
            namespace,
            name: name.to_owned(),
        };
        let stored = api.played.put(CLUSTERS, cluster.object());
        api.played.put(PODS, cluster.head(&stored));
        cluster
    }

    fn object(&self) -> Value {
        let port = self.gcs.address().port().to_string();
        let size = json!({ "cpu": "1", "memory": "2Gi" });
        let pod = json!({ "spec": { "containers": [
            { "name": "ray", "image": "ray:2.60.0", "resources": { "limits": size, "requests": size } }
        ] } });
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {
                "namespace": self.namespace, "name": self.name,
                "annotations": { "rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "nobody" }
            },
            "spec": {
                "enableInTreeAutoscaling": true,
                "autoscalerOptions": { "version": "v2" },
                "headGroupSpec": { "rayStartParams": { "num-cpus": "0", "port": port }, "template": pod },
                "workerGroupSpecs": [{
                    "groupName": "cpu", "replicas": 0, "minReplicas": 0, "maxReplicas": 8,
                    "rayStartParams": {}, "template": pod
                }]
            }
        })
    }

    fn head(&self, stored: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": self.namespace, "name": format!("{}-head", self.name),
                "labels": {
                    "ray.io/cluster": self.name, "ray.io/node-type": "head",
                    "ray.io/group": "headgroup", "ray.io/is-ray-node": "yes"
                },
                "ownerReferences": [{
                    "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": self.name,
                    "uid": stored["metadata"]["uid"], "controller": true
                }]
            },
            "spec": { "nodeName": "n", "containers": [{ "name": "ray-head", "image": "ray:2.60.0" }] },
            "status": {
                "phase": "Running", "podIP": "127.0.0.1",
                "conditions": [{ "type": "Ready", "status": "True" }]
            }
        })
    }

    /// Gives it a second head pod, with this GCS at the same port of another address.
    pub async fn add_head(&self, played: play_gcs::Played) -> PlayedGcs {
        let mut pod = self.head(&self.stored().unwrap());
        pod["metadata"]["name"] = json!(format!("{}-head-2", self.name));
        pod["status"]["podIP"] = json!("127.0.0.2");
        self.played.put(PODS, pod);
        let at = format!("127.0.0.2:{}", self.gcs.address().port());
        PlayedGcs::listen(at.parse().unwrap(), played, None).await
    }

    /// Says whether a head pod is ready, and since when.
    pub fn is_ready(&self, head: &str, status: &str, since: &str) {
        let mut pod = self.played.get(PODS, self.namespace, head).unwrap();
        pod["status"]["conditions"] =
            json!([{ "type": "Ready", "status": status, "lastTransitionTime": since }]);
        self.played.put(PODS, pod);
    }

    pub fn stored(&self) -> Option<Value> {
        self.played.get(CLUSTERS, self.namespace, &self.name)
    }

    pub fn replicas(&self) -> i64 {
        let stored = self.stored().unwrap_or_default();
        stored["spec"]["workerGroupSpecs"][0]["replicas"]
            .as_i64()
            .unwrap_or(0)
    }

    /// It was given the two workers that it waits for, and no more.
    pub async fn is_scaled(&self) {
        let what = format!("{}/{} is scaled", self.namespace, self.name);
        soon(&what, || self.replicas() == 2).await;
    }

    pub fn delete(&self) {
        self.played.delete(CLUSTERS, self.namespace, &self.name);
        self.played
            .delete(PODS, self.namespace, &format!("{}-head", self.name));
    }
}

/// What the GCS of a head pod tells while so many tasks wait.
pub fn waiting(tasks: i64, head: &str) -> messages::ClusterResourceState {
    messages::ClusterResourceState {
        node_states: vec![messages::NodeState {
            node_id: vec![7; 28],
            instance_id: head.to_owned(),
            ray_node_type_name: "headgroup".to_owned(),
            total_resources: [("node:__internal_head__".to_owned(), 1.0)].into(),
            status: messages::NodeStatus::Running.into(),
            ..messages::NodeState::default()
        }],
        pending_resource_requests: vec![messages::ResourceRequestByCount {
            request: Some(messages::ResourceRequest {
                resources_bundle: [("CPU".to_owned(), 1.0)].into(),
                label_selectors: vec![rpc::LabelSelector::default()],
                ..messages::ResourceRequest::default()
            }),
            count: tasks,
        }],
        ..messages::ClusterResourceState::default()
    }
}
