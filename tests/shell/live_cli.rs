//! `rayfit status` of a live cluster: it shows what is done by whoever scales the cluster. The API server is
//! played, and the GCS does not answer.

use std::path::PathBuf;

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::process::Command;

/// A cluster with these annotations, one worker of which is on a cordoned Kubernetes node, a RayPolicy,
/// and the kubeconfig for the API server that has them.
async fn api_server(name: &str, annotations: Value) -> PathBuf {
    let size = json!({"cpu": "2", "memory": "4Gi"});
    let container = json!({"name": "ray", "image": "ray:2.60.0", "resources": {"limits": size, "requests": size}});
    let template = json!({"spec": {"containers": [container]}});
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ray", "uid": "u", "annotations": annotations}, "spec": {
            "enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"},
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 9,
                "rayStartParams": {}, "template": template}]}});
    let pod = |name: &str, kind: &str, group: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ray", "uid": name,
                "labels": {"ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group},
                "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
                    "uid": "u", "controller": true}]},
            "spec": {"containers": [container], "nodeName": "n1"},
            "status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})
    };
    let pods = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {},
        "items": [pod("head", "head", "headgroup"), pod("w", "worker", "cpu")]});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "spec": {"unschedulable": true}});
    let policies = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicyList", "metadata": {},
        "items": [{"metadata": {"name": "team-a"}, "spec": {"reconcile": {"drainTimeoutSeconds": 30}}}]});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ray"}});
    let answer = |value: Value| get(move || async move { axum::Json(value) });
    let router = Router::new()
        .route(
            "/apis/ray.io/v1/namespaces/ray/rayclusters/demo",
            answer(cluster),
        )
        .route("/api/v1/namespaces/ray/pods", answer(pods))
        .route("/api/v1/namespaces/ray", answer(namespace))
        .route("/api/v1/nodes/n1", answer(node))
        .route("/apis/rayfit.dev/v1alpha1/raypolicies", answer(policies));
    let file =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("live-kubeconfig-{name}.json"));
    crate::client_support::kubeconfig(router, file).await
}

async fn status(name: &str, annotations: Value) -> String {
    let kubeconfig = api_server(name, annotations).await;
    let output = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args(["status", "ray/demo", "--gcs-address", "127.0.0.1:1"])
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn what_a_sidecar_does_not_know_is_not_shown() {
    let central =
        json!({"rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "central/rayfit-system"});
    let text = status("central", central).await;
    assert!(
        text.contains("about to leave: pod w of group cpu"),
        "{text}"
    );
    assert!(!text.contains("the head's container"), "{text}");

    let sidecar = json!({"rayfit.dev/reconcile": "sidecar", "rayfit.dev/scaled-by": "sidecar/1-2"});
    let text = status("sidecar", sidecar).await;
    assert!(!text.contains("about to leave"), "{text}");
    let why = "the head's container scales it, by the annotation rayfit.dev/settings";
    assert!(text.contains(why), "{text}");
}
