//! Reviews as API servers send them, and a router to send them to.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use rayfit::admission::new_pods::{OwnerReader, OwnerReads, OwnerUnread};
use rayfit::admission::{Admission, AdmissionCapacity, AdmissionLimits, router};
use rayfit::telemetry::Metrics;
use rayfit_core::dns_name::Key;
use rayfit_core::initial_size::OwnerCluster;
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::ray::initial_sizes::{ANNOTATION, InitialSizes};
use rayfit_core::ray::resource::CpuAndMemory;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A RayCluster that no rule has anything to say against in these tests.
pub fn cluster() -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ml"},
        "spec": {
            "rayVersion": "2.60.0",
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": pod()},
            "workerGroupSpecs": [{
                "groupName": "small",
                "replicas": 1, "minReplicas": 0, "maxReplicas": 3,
                "rayStartParams": {},
                "template": pod(),
            }],
        },
    })
}

fn pod() -> Value {
    let size = json!({"cpu": "1", "memory": "2Gi"});
    json!({"spec": {"containers": [{
        "name": "ray",
        "image": "rayproject/ray:2.60.0",
        "env": [{"name": "TOKEN", "value": SECRET}],
        "resources": {"requests": size, "limits": size},
    }]}})
}

/// What must never be logged.
pub const SECRET: &str = "hunter2-the-secret";

/// The same, fixing the size of a group that is to grow in place (RF105).
pub fn bad_cluster() -> Value {
    let mut cluster = cluster();
    cluster["metadata"]["annotations"]["ray.io/ippr"] =
        json!({"groups": {"small": {"max-cpu": 4, "max-memory": "8Gi", "resize-timeout": 60}}})
            .to_string()
            .into();
    cluster["spec"]["enableInTreeAutoscaling"] = true.into();
    cluster["spec"]["workerGroupSpecs"][0]["rayStartParams"]["num-cpus"] = "1".into();
    cluster
}

/// The same with one more error (RF201) and a warning (RF103); RF119 is only recorded.
pub fn worse_cluster() -> Value {
    let mut cluster = bad_cluster();
    cluster["spec"]["workerGroupSpecs"][0]["minReplicas"] = 5.into();
    let limits = json!({"max-cpu": 4, "max-memory": "8Gi", "resize-timeout": 60});
    let limits = json!({"groups": {"small": limits, "gone": limits}});
    cluster["metadata"]["annotations"]["ray.io/ippr"] = limits.to_string().into();
    cluster
}

/// A review of a create.
pub fn create(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0c6d5a3e-1",
            "kind": {"group": "ray.io", "version": "v1", "kind": object["kind"]},
            "resource": {"group": "ray.io", "version": "v1", "resource": "rayclusters"},
            "name": object["metadata"]["name"].as_str().unwrap_or_default(),
            "namespace": "ml",
            "operation": "CREATE",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": null,
            "dryRun": false,
            "options": {"kind": "CreateOptions"},
        },
    })
}

/// A review of an update.
pub fn update(object: &Value, old: &Value) -> Value {
    let mut review = create(object);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["oldObject"] = old.clone();
    review
}

/// A worker pod as KubeRay makes it, of group `small` of the RayCluster `demo`.
pub fn worker() -> Value {
    let mut pod = pod();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"] = json!({
        "generateName": "demo-small-worker-",
        "labels": {"ray.io/node-type": "worker", "ray.io/group": "small", "ray.io/cluster": "demo"},
        "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
            "uid": "uid-of-demo", "controller": true, "blockOwnerDeletion": true}],
    });
    pod
}

/// `metadata` of that RayCluster, whose pods may grow to 4 CPUs and 8 GiB, and are now made with so many CPUs and GiB.
pub fn owner(cores: i64, gibibytes: i64, now: f64) -> Value {
    let mut sizes = InitialSizes::default();
    let size = CpuAndMemory {
        cpu_milli: cores * 1000,
        memory_bytes: gibibytes << 30,
    };
    sizes.set("small", Some(size), now);
    let limits = r#"{"groups":{"small":{"max-cpu":4,"max-memory":"8Gi","resize-timeout":60}}}"#;
    json!({
        "name": "demo", "namespace": "ml", "uid": "uid-of-demo",
        "annotations": {ANNOTATION: sizes.text().unwrap(), "ray.io/ippr": limits},
    })
}

/// A review of a pod that is created.
pub fn create_pod(pod: &Value, namespace: &str) -> Value {
    let mut review = create(pod);
    let request = &mut review["request"];
    request["kind"] = json!({"group": "", "version": "v1", "kind": "Pod"});
    request["resource"] = json!({"group": "", "version": "v1", "resource": "pods"});
    request["namespace"] = namespace.into();
    request["userInfo"]["username"] = "system:serviceaccount:kuberay:kuberay-operator".into();
    review
}

/// A server under a policy that gives new pods their initial size, by what `reader` says of RayClusters.
pub fn serving(
    policy: EffectivePolicy,
    limits: AdmissionLimits,
    reader: Arc<dyn OwnerReader>,
) -> Server {
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let policy = Arc::new(ArcSwap::from_pointee(policy));
    let admission = Admission {
        policy,
        capacity: AdmissionCapacity::new(limits),
        metrics: metrics.clone(),
        owners: OwnerReads::new(reader),
    };
    Server {
        router: router(Arc::new(admission)),
        metrics,
    }
}

/// The same under no policy.
pub fn with_owners(reader: Arc<dyn OwnerReader>, limits: AdmissionLimits) -> Server {
    serving(EffectivePolicy::default(), limits, reader)
}

/// Knows no API server.
#[derive(Debug)]
pub struct Alone;

impl OwnerReader for Alone {
    fn read(&self, _: Key) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>> {
        Box::pin(std::future::ready(Err(OwnerUnread::NoApiServer)))
    }

    fn now(&self) -> f64 {
        0.0
    }
}

/// The requests and limits of the ray container, once the answer's patch is applied.
pub fn made(pod: &Value, response: &Value) -> Value {
    assert_eq!(response["allowed"], true, "{response}");
    let mut pod = pod.clone();
    if let Some(patch) = response["patch"].as_str() {
        let patch = STANDARD.decode(patch).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut pod, &patch).unwrap();
    }
    pod["spec"]["containers"][0]["resources"].take()
}

/// A server without a network.
pub struct Server {
    pub router: Router,
    pub metrics: Arc<Metrics>,
}

pub fn server() -> Server {
    with(AdmissionLimits::default())
}

pub fn with(limits: AdmissionLimits) -> Server {
    with_owners(Arc::new(Alone), limits)
}

pub fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path)
        .header("content-type", "application/json; charset=utf-8")
        .body(body.into())
        .unwrap()
}

impl Server {
    pub async fn send(&self, request: Request<Body>) -> (StatusCode, String) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// The `response` of the answer to a review; its envelope is checked on the way.
    pub async fn ask(&self, path: &str, review: &Value) -> Value {
        let (status, body) = self.send(post(path, review.to_string())).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let mut answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        let response = answer["response"].take();
        assert_eq!(response["uid"], review["request"]["uid"]);
        assert_eq!(response["patch"].is_null(), response["patchType"].is_null());
        response
    }

    /// The value of a metric, as it is written after its name and labels.
    pub fn metric(&self, series: &str) -> Option<String> {
        let text = self.metrics.text().unwrap();
        let line = text.lines().find(|line| line.starts_with(series))?;
        Some(line.rsplit(' ').next().unwrap().to_owned())
    }
}
