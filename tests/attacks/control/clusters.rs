//! The real controller at a played API server, and Ray clusters that want to grow.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rayfit::apiserver::{ApiServer, Informers, Watches};
use rayfit::controller::observe::WatchScope;
use rayfit::controller::tuning::InForce;
use rayfit::controller::{ControllerOptions, LeaseOptions, run};
use rayfit::supervisor::Supervisor;
use rayfit::telemetry::Metrics;
use rayfit_core::reconcile::ownership::lease::record::Terms;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::play_gcs::{self, PlayedGcs, messages, rpc};
use crate::played_api::PlayedApi;

pub const CLUSTERS: &str = "/apis/ray.io/v1/rayclusters";
pub const PODS: &str = "/api/v1/pods";

/// The bound is for what is broken, and not a measure.
pub const BOUND: Duration = Duration::from_mins(2);

/// How long a test would have to wait for something that is not to be waited for, in seconds.
pub const NEVER: u32 = 86_400;

/// The path of a team's cluster.
pub fn path(namespace: &str) -> String {
    format!("/apis/ray.io/v1/namespaces/{namespace}/rayclusters/ray")
}

/// Waits for what must come.
pub async fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(BOUND, waiting).await;
    assert!(waited.is_ok(), "still waiting: {what}");
}

/// Waits until the Lease has been renewed several times: whatever was to be done at once has been done by
/// then, on a slow machine too.
pub async fn time_goes_on(api: &PlayedApi) {
    let renewed = || api.calls("update", "leases").len();
    let before = renewed();
    soon("the Lease is renewed", || renewed() > before + 3).await;
}

/// A controller that runs, and what it tells.
pub struct Controller {
    pub metrics: Arc<Metrics>,
    pub supervisor: Supervisor,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Controller {
    pub fn start(api: &PlayedApi) -> Self {
        Self::with(api.server(), "a")
    }

    /// A replica of this name.
    pub fn with(server: ApiServer, replica: &str) -> Self {
        let metrics = Arc::new(Metrics::new(Arc::default()));
        let supervisor = Supervisor::default();
        let in_force = InForce {
            known: Arc::new(AtomicBool::new(true)),
            ..InForce::default()
        };
        let informers = Informers::new(server.client.clone(), metrics.watches.clone());
        let options = ControllerOptions {
            reach: WatchScope::Everything,
            lease: LeaseOptions {
                namespace: "rayfit-system".to_owned(),
                replica: replica.to_owned(),
                // A write needs four seconds of trust, so that a renewal may be late by six.
                terms: Terms {
                    duration: Duration::from_secs(12),
                    renew: Duration::from_secs(1),
                    margin: Duration::from_secs(1),
                },
            },
            rate: 200,
            burst: 400,
            image: "rayfit".to_owned(),
            cluster_metrics: 1,
        };
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(
            options,
            server,
            in_force,
            metrics.scaling.clone(),
            informers,
            supervisor.clone(),
            stopped,
        ));
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
        let stopped = tokio::time::timeout(BOUND, self.task).await;
        stopped.expect("it stops").unwrap();
    }

    pub fn watches(&self) -> Watches {
        self.metrics.watches.clone()
    }

    /// The value of a metric: the sum of its series.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.text().unwrap();
        assert!(text.contains(name), "no {name} in {text}");
        let values = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (_, value) = rest.rsplit_once(' ')?;
            rest.starts_with(['{', ' '])
                .then(|| value.parse::<f64>().unwrap())
        });
        values.fold(0.0, |sum, value| sum + value)
    }
}

/// A Ray cluster of which two tasks wait for a worker each.
pub struct Cluster {
    api: PlayedApi,
    pub gcs: PlayedGcs,
    namespace: &'static str,
}

impl Cluster {
    pub async fn new(api: &PlayedApi, namespace: &'static str) -> Self {
        Self::of(api, namespace, PlayedGcs::start(Self::wants_two()).await)
    }

    /// The same with a second head pod, which has this GCS at the same port of another address.
    pub async fn with_two_heads(
        api: &PlayedApi,
        namespace: &'static str,
        second: play_gcs::Played,
    ) -> (Self, PlayedGcs) {
        let (first, second) = PlayedGcs::pair(Self::wants_two(), second).await;
        let cluster = Self::of(api, namespace, first);
        let mut pod = cluster.head(&cluster.stored().unwrap());
        pod["metadata"]["name"] = json!("ray-head-2");
        pod["status"]["podIP"] = json!("127.0.0.2");
        api.store(PODS, pod);
        (cluster, second)
    }

    fn wants_two() -> play_gcs::Played {
        play_gcs::Played {
            state: waiting(2, "ray-head"),
            ..play_gcs::Played::default()
        }
    }

    fn of(api: &PlayedApi, namespace: &'static str, gcs: PlayedGcs) -> Self {
        let cluster = Self {
            api: api.clone(),
            gcs,
            namespace,
        };
        let stored = api.store(CLUSTERS, cluster.object());
        api.store(PODS, cluster.head(&stored));
        cluster
    }

    fn object(&self) -> Value {
        let port = self.gcs.address().port.to_string();
        let size = json!({ "cpu": "1", "memory": "2Gi" });
        let pod = json!({ "spec": { "containers": [
            { "name": "ray", "image": "ray:2.60.0", "resources": { "limits": size, "requests": size } }
        ] } });
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {
                "namespace": self.namespace, "name": "ray",
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
                "namespace": self.namespace, "name": "ray-head",
                "labels": {
                    "ray.io/cluster": "ray", "ray.io/node-type": "head",
                    "ray.io/group": "headgroup", "ray.io/is-ray-node": "yes"
                },
                "ownerReferences": [{
                    "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray",
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

    /// Says whether a head pod is ready, and since when.
    pub fn is_ready(&self, head: &str, status: &str, since: &str) {
        self.api.change(&self.pod(head), |pod| {
            pod["status"]["conditions"] =
                json!([{ "type": "Ready", "status": status, "lastTransitionTime": since }]);
        });
    }

    fn pod(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{name}", self.namespace)
    }

    pub fn stored(&self) -> Option<Value> {
        self.api.get(&path(self.namespace))
    }

    pub fn replicas(&self) -> i64 {
        let stored = self.stored().unwrap_or_default();
        stored["spec"]["workerGroupSpecs"][0]["replicas"]
            .as_i64()
            .unwrap_or(0)
    }

    /// It was given the two workers that it waits for, and no more.
    pub async fn is_scaled(&self) {
        let what = format!("the cluster of {} is scaled", self.namespace);
        soon(&what, || self.replicas() == 2).await;
    }

    pub fn delete(&self) {
        self.api.delete(&path(self.namespace));
        self.api.delete(&self.pod("ray-head"));
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
