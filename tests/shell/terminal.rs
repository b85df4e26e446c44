//! Commands on a terminal, with texts of strangers in all that they read: a terminal obeys none of them.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use axum::Router;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::client_support::kubeconfig;
use crate::play_gcs::{Played, PlayedGcs, messages};
use crate::played_api::PlayedApi;

/// Sets the title, clears the screen, writes a line of its own, turns the text around.
const OBEYED: &str = "a\u{1b}]0;owned\u{7}\u{1b}[2J\r\nforged: all is well\u{202e}";

/// What a command writes on a terminal.
fn on_terminal(arguments: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let program = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let stream = |file: &File| Stdio::from(file.try_clone().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(stream(&program))
        .stdout(stream(&program))
        .stderr(stream(&program))
        .spawn()
        .unwrap();
    drop(program);
    let (mut written, mut part) = (Vec::new(), [0; 4096]);
    let mut terminal = File::from(terminal);
    // Once the command has ended, there is an error instead of an end.
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        written.extend_from_slice(&part[..count]);
    }
    child.wait().unwrap();
    String::from_utf8(written).unwrap()
}

fn written(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terminal");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// An object with the text for every name, as JSON, which is YAML too.
fn named(file: &str) -> Value {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut value = rayfit_core::yaml::read(&text).remove(0).unwrap().value;
    rename(&mut value);
    value
}

fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(fields) => {
            fields.values_mut().for_each(rename);
            for key in ["name", "groupName", "instanceId", "rayNodeTypeName"] {
                if let Some(name @ Value::String(_)) = fields.get_mut(key) {
                    *name = OBEYED.into();
                }
            }
            if let Some(Value::Object(bundle)) = fields.get_mut("resourcesBundle") {
                bundle.insert(OBEYED.to_owned(), json!(1));
            }
        }
        _ => {}
    }
}

#[test]
fn nothing_that_a_stranger_wrote_is_obeyed() {
    let cluster = named("examples/bad.yaml");
    let cluster = written("cluster.json", &cluster.to_string());
    let broken = written("broken.yaml", "a: \u{202e}b: c\n");
    let snapshot = written(
        "snapshot.json",
        &named("examples/snapshot.yaml").to_string(),
    );
    let header = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "Trace", "name": OBEYED});
    let job = json!({"task": "a", "name": OBEYED, "seconds": 1, "resources": {OBEYED: 1}});
    let trace = written("trace.jsonl", &format!("{header}\n{job}\n"));
    let [cluster, broken, snapshot, trace] =
        [&cluster, &broken, &snapshot, &trace].map(|file| file.to_str().unwrap());
    let good = "examples/trace.jsonl";
    for arguments in [
        &["check", cluster, broken][..],
        &["check", cluster, "-o", "github"],
        &["check", &format!("{OBEYED}.yaml")],
        &["default", cluster],
        &["default", "--diff", cluster],
        &["default", broken],
        &["plan", snapshot],
        &["trace", trace],
        &["trace", "--summary", trace],
        &["simulate", good, "--cluster", cluster],
        &["simulate", trace, "--cluster", "examples/good.yaml"],
        &["recommend", good, "--cluster", cluster],
    ] {
        is_not_obeyed(arguments);
    }
}

/// On a terminal, and in a pipe, from which others show it.
fn is_not_obeyed(arguments: &[&str]) {
    let mut piped = Command::new(env!("CARGO_BIN_EXE_rayfit"));
    piped
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let piped = piped.output().unwrap();
    let piped = String::from_utf8([piped.stdout, piped.stderr].concat()).unwrap();
    for written in [on_terminal(arguments), piped] {
        for obeyed in ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{202e}", "\nforged"] {
            assert!(!written.contains(obeyed), "{arguments:?}: {written:?}");
        }
        assert!(!written.is_empty(), "{arguments:?}");
    }
}

/// An API server that has a RayCluster with the text wherever one of its kind may have it, pods of which something
/// is said in it, and a RayPolicy.
fn strangers_api(group: &str) -> PlayedApi {
    let api = PlayedApi::default();
    let size = json!({"cpu": "2", "memory": "4Gi"});
    let resources = json!({"limits": size, "requests": size});
    let container = json!({"name": OBEYED, "image": OBEYED, "resources": resources});
    let template = json!({"spec": {"containers": [container], "nodeSelector": {"a": OBEYED}}});
    let ippr = json!({"groups": {group: {"max-cpu": 4, "max-memory": "8Gi", "resize-timeout": 60}, "other": OBEYED}});
    let annotations = json!({"rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": OBEYED,
        "ray.io/ippr": ippr.to_string(), "rayfit.dev/settings": OBEYED});
    let spec = json!({"enableInTreeAutoscaling": true, "rayVersion": OBEYED, "managedBy": OBEYED,
        "autoscalerOptions": {"version": "v2", "upscalingMode": OBEYED},
        "idleTerminationOptions": {"timeoutSeconds": 60, "policy": OBEYED},
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template},
        "workerGroupSpecs": [{"groupName": group, "replicas": 3, "minReplicas": 1, "maxReplicas": 9,
            "labels": {"a": OBEYED}, "rayStartParams": {"num-cpus": OBEYED}, "template": template}]});
    let condition =
        json!({"type": "ReplicaFailure", "status": "True", "reason": OBEYED, "message": OBEYED});
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"uid": "u", "annotations": annotations, "labels": {"team": OBEYED, "vault.example/token": SECRET}},
        "spec": spec, "status": {"state": OBEYED, "conditions": [condition]}});
    api.put("/apis/ray.io/v1/namespaces/ray/rayclusters/demo", cluster);
    for (name, kind, phase) in [
        ("head", "head", "Running"),
        ("w", "worker", "Running"),
        ("late", "worker", "Pending"),
    ] {
        let because =
            |of: &str| json!({"type": of, "status": "True", "reason": OBEYED, "message": OBEYED});
        let status = json!({"phase": phase, "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
            "conditions": [because("PodResizePending"), because("PodResizeInProgress"),
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": OBEYED}],
            "containerStatuses": [{"name": OBEYED, "image": OBEYED, "state": {"waiting": {"reason": OBEYED, "message": OBEYED}}}]});
        let labels = json!({"ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group,
            "vault.example/token": SECRET});
        let owner = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "u", "controller": true});
        let node = (phase == "Running").then_some("n1");
        api.put(&format!("/api/v1/namespaces/ray/pods/{name}"), json!({
            "metadata": {"uid": name, "labels": labels, "ownerReferences": [owner],
                "creationTimestamp": "2026-01-14T12:00:00Z", "annotations": {"ray.io/ippr-status": OBEYED}},
            "spec": {"containers": [container], "nodeName": node}, "status": status}));
        let about = json!({"kind": "Pod", "namespace": "ray", "name": name, "uid": name});
        api.put(&format!("/api/v1/namespaces/ray/events/{name}"), json!({"type": "Normal",
            "reason": "NotTriggerScaleUp", "message": OBEYED, "involvedObject": about, "reportingComponent": OBEYED,
            "source": {"component": "cluster-autoscaler"}, "lastTimestamp": "2026-01-14T12:00:00Z", "count": 1}));
    }
    api.put("/api/v1/nodes/n1", json!({"metadata": {"labels": {"vault.example/token": SECRET}}, "spec": {
        "unschedulable": true, "taints": [{"key": OBEYED, "value": OBEYED, "effect": "NoSchedule"}]}}));
    api.put(
        "/api/v1/namespaces/ray",
        json!({"metadata": {"labels": {"vault.example/token": SECRET, "team": "a"}}}),
    );
    api.put(
        "/apis/rayfit.dev/v1alpha1/raypolicies/team",
        json!({"spec": {
        "match": {"objectSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
        "description": OBEYED, "reconcile": {"drainTimeoutSeconds": 30}}}),
    );
    api
}

/// A value of a label that only another tool reads.
const SECRET: &str = "s3cret";

/// A GCS of a stranger. Where names of resources are its text too, all that it says is refused.
fn strangers_gcs(resource: &str) -> Played {
    let node = messages::NodeState {
        node_id: vec![7; 28],
        instance_id: "w".to_owned(),
        ray_node_type_name: OBEYED.to_owned(),
        labels: [(OBEYED.to_owned(), OBEYED.to_owned())].into(),
        total_resources: [(resource.to_owned(), 2.0)].into(),
        status: messages::NodeStatus::Running.into(),
        ..Default::default()
    };
    let request = messages::ResourceRequest {
        resources_bundle: [(resource.to_owned(), 64.0)].into(),
        ..Default::default()
    };
    let count = messages::ResourceRequestByCount {
        request: Some(request),
        count: 3,
    };
    let unknown = messages::NodeState {
        node_id: vec![8; 28],
        instance_id: OBEYED.to_owned(),
        ..node.clone()
    };
    let state = messages::ClusterResourceState {
        node_states: vec![node, unknown],
        pending_resource_requests: vec![count],
        ..Default::default()
    };
    let error = (Vec::new(), b"__autoscaling_error".to_vec());
    Played {
        state,
        keys: [(error, OBEYED.as_bytes().to_vec())].into(),
        ..Played::default()
    }
}

async fn leading_to(router: Router, name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = kubeconfig(router, folder.join(format!("terminal-{name}.json"))).await;
    file.to_str().unwrap().to_owned()
}

/// The commands that ask an API server, and a GCS.
const LIVE: [&[&str]; 11] = [
    &["status"],
    &["status", "ray/demo"],
    &["plan", "ray/demo"],
    &["plan", "ray/demo", "-o", "json"],
    &["record", "ray/demo"],
    &["record", "ray/demo", "-o", "json"],
    &["record", "--trace", "ray/demo", "--for", "1s"],
    &["recommend", "ray/demo", "--for", "1s"],
    &["rollout"],
    &["rollout", "--savings"],
    &["release"],
];

/// Those of them that ask no GCS.
fn asks_gcs(arguments: &[&str]) -> bool {
    !["rollout", "release"].contains(&arguments[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_live_cluster_says_is_obeyed() {
    for (name, group, resource) in [
        ("names", OBEYED, "CPU"),
        ("resources", "cpu", OBEYED),
        ("texts", "cpu", "CPU"),
    ] {
        let gcs = PlayedGcs::start(strangers_gcs(resource)).await;
        let config = leading_to(strangers_api(group).router(), name).await;
        let address = gcs.address().to_string();
        for arguments in LIVE {
            let more: &[&str] = if asks_gcs(arguments) {
                &["--gcs-address", &address]
            } else {
                &[]
            };
            let all = [arguments, more, &["--kubeconfig", &config]].concat();
            tokio::task::block_in_place(|| is_not_obeyed(&all));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_of_a_server_is_obeyed() {
    let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
        "message": OBEYED, "reason": OBEYED});
    let refused = move || async move { (axum::http::StatusCode::FORBIDDEN, axum::Json(refused)) };
    let refusing = leading_to(Router::new().fallback(refused), "refusing").await;
    let failing = Played {
        failure: Some((tonic::Code::Internal, OBEYED.to_owned(), OBEYED.to_owned())),
        ..Played::default()
    };
    let gcs = PlayedGcs::start(failing).await;
    let answering = leading_to(strangers_api("cpu").router(), "failing").await;
    let address = gcs.address().to_string();
    for arguments in LIVE {
        let refused = [arguments, &["--kubeconfig", &refusing]].concat();
        tokio::task::block_in_place(|| is_not_obeyed(&refused));
        if asks_gcs(arguments) {
            let failed = [
                arguments,
                &["--kubeconfig", &answering, "--gcs-address", &address],
            ]
            .concat();
            tokio::task::block_in_place(|| is_not_obeyed(&failed));
        }
    }
}

/// Labels by which a policy selects, and those of Ray, are in a snapshot, and those of other tools are not.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_has_no_labels_of_other_tools() {
    let api = strangers_api("cpu");
    let config = leading_to(api.router(), "labels").await;
    let gcs = PlayedGcs::start(strangers_gcs("CPU")).await;
    let address = gcs.address().to_string();
    let recorded = || {
        let mut record = Command::new(env!("CARGO_BIN_EXE_rayfit"));
        record.args([
            "record",
            "ray/demo",
            "-o",
            "json",
            "--gcs-address",
            &address,
            "--kubeconfig",
            &config,
        ]);
        let recorded = record.output().unwrap();
        let text = String::from_utf8(recorded.stdout).unwrap();
        assert!(!text.contains(SECRET) && !text.contains("vault"), "{text}");
        let snapshot: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            snapshot["pods"][0]["metadata"]["labels"]["ray.io/cluster"],
            "demo"
        );
        snapshot["rayCluster"]["metadata"]["labels"].clone()
    };
    let with_policy = tokio::task::block_in_place(recorded);
    assert_eq!(with_policy, json!({"team": OBEYED}));
    api.delete("/apis/rayfit.dev/v1alpha1/raypolicies/team");
    assert_eq!(tokio::task::block_in_place(recorded), json!({}));
}
