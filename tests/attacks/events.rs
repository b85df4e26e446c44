//! Telling people: what one cluster makes Rayfit say keeps nobody else from being told, or scaled.

use std::time::Duration;

use rayfit::apiserver::{Informers, Watches};
use rayfit::controller::observe::WatchScope;
use rayfit::controller::tuning::InForce;
use rayfit::controller::{self, ControllerOptions, LeaseOptions};
use rayfit::supervisor::Supervisor;
use rayfit_core::reconcile::ownership::lease::record::Terms;
use rayfit_core::reconcile::{
    Done, Effect, Reply, RoundMemory, RoundSettings, UnchangedCheck, round,
};
use rayfit_core::snapshot::Snapshot;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::play_gcs::{Played, PlayedGcs, messages, rpc};
use crate::played_api::PlayedApi;
use crate::process_support::PATIENCE;

pub(crate) fn cluster_path(namespace: &str) -> String {
    format!("/apis/ray.io/v1/namespaces/{namespace}/rayclusters/ray")
}

fn events(api: &PlayedApi, namespace: &str) -> Vec<Value> {
    api.all(&format!(
        "/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    ))
}

pub(crate) fn with_reason(api: &PlayedApi, namespace: &str, reason: &str) -> usize {
    let events = events(api, namespace);
    events
        .iter()
        .filter(|event| event["reason"] == reason)
        .count()
}

/// Requests about Events of a namespace, counted ones included.
fn requests(api: &PlayedApi, namespace: &str) -> usize {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let requests = &api.objects().requests;
    requests
        .iter()
        .filter(|call| call.path.starts_with(&path))
        .count()
}

/// Every team calls its cluster `ray`.
pub(crate) fn put_cluster(api: &PlayedApi, namespace: &str, gcs_port: u16) {
    let container = json!({ "name": "ray", "image": "rayproject/ray:2.60.0", "resources": {
        "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1", "memory": "1Gi" } } });
    let template = json!({ "spec": { "containers": [container] } });
    let uid = format!("uid-of-{namespace}");
    api.put(
        &cluster_path(namespace),
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": { "uid": uid, "annotations": {
                "rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "central/rayfit-system" } },
            "spec": {
                "enableInTreeAutoscaling": true,
                "headGroupSpec": { "template": template,
                    "rayStartParams": { "num-cpus": "0", "port": gcs_port.to_string() } },
                "workerGroupSpecs": [{ "groupName": "cpu", "replicas": 0, "minReplicas": 0,
                    "maxReplicas": 9, "rayStartParams": {}, "template": template }],
            },
            "status": { "head": { "podIP": "127.0.0.1" } },
        }),
    );
    put_head(api, namespace, Some("127.0.0.1"), true);
}

fn put_head(api: &PlayedApi, namespace: &str, ip: Option<&str>, ready: bool) {
    api.put(
        &format!("/api/v1/namespaces/{namespace}/pods/ray-head"),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "uid": format!("uid-of-head-{namespace}"),
                "labels": { "ray.io/cluster": "ray", "ray.io/node-type": "head", "ray.io/group": "headgroup" },
                "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray",
                    "uid": format!("uid-of-{namespace}"), "controller": true }] },
            "spec": { "containers": [{ "name": "ray-head", "image": "rayproject/ray:2.60.0" }] },
            "status": { "phase": if ip.is_some() { "Running" } else { "Pending" }, "podIP": ip,
                "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }] },
        }),
    );
}

/// A GCS with a head and these demands: CPUs, and how often.
pub(crate) fn state(demands: &[(f64, i64)]) -> messages::ClusterResourceState {
    let head = messages::NodeState {
        node_id: vec![1; 28],
        instance_id: "ray-head".to_owned(),
        ray_node_type_name: "headgroup".to_owned(),
        total_resources: [("node:__internal_head__".to_owned(), 1.0)].into(),
        status: messages::NodeStatus::Running.into(),
        ..messages::NodeState::default()
    };
    let request = |(cpus, count): &(f64, i64)| messages::ResourceRequestByCount {
        request: Some(messages::ResourceRequest {
            resources_bundle: [("CPU".to_owned(), *cpus)].into(),
            label_selectors: vec![rpc::LabelSelector::default()],
            ..messages::ResourceRequest::default()
        }),
        count: *count,
    };
    messages::ClusterResourceState {
        node_states: vec![head],
        pending_resource_requests: demands.iter().map(request).collect(),
        ..messages::ClusterResourceState::default()
    }
}

pub(crate) async fn gcs(demands: &[(f64, i64)]) -> PlayedGcs {
    let state = state(demands);
    PlayedGcs::start(Played {
        state,
        ..Played::default()
    })
    .await
}

/// The controller of `rayfit serve`, at work.
pub(crate) struct Controller {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Controller {
    pub(crate) fn start(api: &PlayedApi) -> Self {
        let in_force = InForce::default();
        let (stop, stopped) = watch::channel(false);
        let options = ControllerOptions {
            reach: WatchScope::Everything,
            lease: LeaseOptions {
                namespace: "rayfit-system".to_owned(),
                replica: "a".to_owned(),
                terms: Terms::default(),
            },
            rate: 200,
            burst: 400,
            image: "rayfit:test".to_owned(),
            cluster_metrics: 0,
        };
        in_force
            .known
            .store(true, std::sync::atomic::Ordering::Release);
        let informers = Informers::new(api.client(), Watches::default());
        let running = controller::run(
            options,
            api.server(),
            in_force,
            std::sync::Arc::default(),
            informers,
            Supervisor::default(),
            stopped,
        );
        let task = tokio::spawn(running);
        Self { stop, task }
    }

    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

pub(crate) fn replicas(api: &PlayedApi, namespace: &str) -> i64 {
    let cluster = api.get(&cluster_path(namespace)).unwrap();
    cluster["spec"]["workerGroupSpecs"][0]["replicas"]
        .as_i64()
        .unwrap()
}

/// The neighbour asks for workers, gets them, and is told.
pub(crate) async fn is_served(api: &PlayedApi, namespace: &str, gcs: &PlayedGcs) {
    gcs.played().state = state(&[(1.0, 3)]);
    until("the neighbour is scaled", || replicas(api, namespace) == 3).await;
    until("the neighbour is told", || {
        with_reason(api, namespace, "ScaledUp") == 1
    })
    .await;
}

/// A job asks for something else at each look that no group can give.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_demands_floods_no_events() {
    let api = PlayedApi::default();
    let (flooding, neighbour) = (gcs(&[]).await, gcs(&[]).await);
    put_cluster(&api, "attacker", flooding.address().port);
    put_cluster(&api, "victim", neighbour.address().port);
    let controller = Controller::start(&api);
    until("the attacker is told something", || {
        flooding.played().state = state(&[(1000.0, 1)]);
        with_reason(&api, "attacker", "CannotFit") > 0
    })
    .await;
    for round in 0..120_u32 {
        let demands: Vec<(f64, i64)> = (0..20)
            .map(|n| (f64::from(2000 + 20 * round + n), 1))
            .collect();
        flooding.played().state = state(&demands);
        sleep(Duration::from_millis(25)).await;
    }
    is_served(&api, "victim", &neighbour).await;
    let count = requests(&api, "attacker");
    assert!(count <= 27, "{count} requests about Events of one cluster");
    controller.end().await;
}

/// The head of a cluster comes, claims to be ready, does not answer and goes, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_crashes_again_and_again_causes_few_events_and_little_load() {
    let api = PlayedApi::default();
    let (crashing, neighbour) = (gcs(&[]).await, gcs(&[]).await);
    put_cluster(&api, "attacker", crashing.address().port);
    put_cluster(&api, "victim", neighbour.address().port);
    let _place = crashing.kill().await;
    let controller = Controller::start(&api);
    until("the cluster is looked at", || {
        neighbour.played().connections > 0
    })
    .await;
    for _ in 0..30 {
        for (ip, ready) in [
            (None, false),
            (Some("127.0.0.1"), false),
            (Some("127.0.0.1"), true),
        ] {
            put_head(&api, "attacker", ip, ready);
            sleep(Duration::from_millis(30)).await;
        }
    }
    is_served(&api, "victim", &neighbour).await;
    assert_eq!(events(&api, "attacker"), [] as [Value; 0]);
    controller.end().await;
}

/// Ten minutes in which only time passes: a demand that cannot be met, in a group whose new pods
/// did not grow. Ray is told of it once, and again only as often as a GCS could have forgotten.
#[test]
fn time_alone_writes_nothing_to_a_gcs() {
    let mut snapshot: Snapshot = serde_json::from_value(with_group_in_growth_back_off()).unwrap();
    let start = snapshot.seconds().unwrap();
    let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
    memory.history = snapshot.history.clone();
    let (mut told, mut events, mut still) = (0, Vec::new(), 0);
    for second in 0..600_u32 {
        let now = start + f64::from(second);
        snapshot.time = rayfit_core::snapshot::moment(now);
        snapshot.history = memory.history.clone();
        let made = round(&snapshot, &memory, &settings);
        assert!(
            made.plan.unmet[0]
                .why(usize::MAX)
                .contains("could not grow"),
            "{:?}",
            made.plan
        );
        let done: Vec<Done> = made
            .chains
            .clone()
            .into_iter()
            .map(|chain| Done {
                about: chain.about.clone(),
                effect: chain.next().unwrap(),
                result: Ok(Reply::Ok),
            })
            .collect();
        told += done
            .iter()
            .filter(|done| matches!(done.effect, Effect::PutError(_)))
            .count();
        let announcements = memory.fold(&made, &done, &settings, now, || 0.5);
        events.extend(announcements.events.iter().map(|event| event.reason));
        if done.is_empty() {
            still += usize::from(
                UnchangedCheck::of(&made, snapshot.clone(), &memory, &settings).is_some(),
            );
        }
    }
    assert!(told <= 21, "{told} writes in ten minutes");
    assert_eq!(events, ["CannotFit"]);
    assert!(still > 300, "only {still} looks were spared");
}

fn with_group_in_growth_back_off() -> Value {
    let container = json!({ "name": "ray", "resources": {
        "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1", "memory": "1Gi" } } });
    let template = json!({ "spec": { "containers": [container] } });
    let limits = r#"{"groups":{"cpu":{"max-cpu":"4","max-memory":"4Gi","resize-timeout":60}}}"#;
    json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": {
            "metadata": { "name": "demo", "namespace": "ray", "uid": "u", "resourceVersion": "1",
                "annotations": { "ray.io/ippr": limits } },
            "spec": {
                "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": template },
                "workerGroupSpecs": [{ "groupName": "cpu", "replicas": 0, "minReplicas": 0,
                    "maxReplicas": 3, "rayStartParams": {}, "template": template }] } },
        "pods": [{ "metadata": { "name": "h", "namespace": "ray", "uid": "h", "labels": {
            "ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup" },
            "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
                "uid": "u", "controller": true }] },
            "status": { "phase": "Running" } }],
        "gcs": {
            "nodeStates": [{ "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": "h",
                "rayNodeTypeName": "headgroup", "status": "RUNNING",
                "totalResources": { "node:__internal_head__": 1 } }],
            "pendingResourceRequests": [{ "count": 1, "request": {
                "resourcesBundle": { "CPU": 3 }, "labelSelectors": [{}] } }] },
        "history": { "growthBackoffs": { "cpu": { "failures": 9, "at": 1_768_391_990.0 } } },
    })
}
