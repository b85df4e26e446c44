//! What leaves a cluster in a snapshot: what decisions read, and no secret beside it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rayfit_core::plan::{self, Strategy, decide};
use rayfit_core::reconcile::{
    Handover, RoundMemory, RoundSettings, ScalerRole, eligibility, round,
};
use rayfit_core::snapshot::Snapshot;
use rayfit_core::snapshot::allowed::RAY_CLUSTER;
use serde_json::{Map, Value, json};

const SECRET: &str = "s3cret";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All that is read of a RayCluster, by everything that reads it.
fn read(snapshot: &Snapshot) -> Vec<String> {
    let cluster = snapshot.ray_cluster.object();
    let strategies = [Strategy::Rayfit, Strategy::Ray].map(|strategy| {
        let settings = plan::PlanSettings {
            strategy,
            ..plan::PlanSettings::default()
        };
        format!("{:?}", decide(snapshot, &settings))
    });
    let mut all = Vec::from(strategies);
    all.push(format!(
        "{:?}",
        round(snapshot, &RoundMemory::default(), &RoundSettings::default()).chains
    ));
    all.push(format!(
        "{}",
        rayfit::controller::head::address::port(cluster)
    ));
    let sidecar = ScalerRole::Sidecar {
        head_uid: "u".to_owned(),
    };
    for role in [ScalerRole::central("rayfit-system"), sidecar] {
        let eligibility = eligibility(cluster, &snapshot.pods, &role, |_| false);
        all.push(format!("{eligibility:?}"));
        let mut handover = Handover::default();
        for now in [0.0, 10.0] {
            let step = handover.step(cluster, true, &role, now);
            all.push(format!("{step:?}"));
        }
    }
    all
}

fn assert_same(snapshot: &Snapshot, of: &str) {
    let mut kept = snapshot.clone();
    kept.ray_cluster = RAY_CLUSTER.keep(snapshot.ray_cluster.object()).into();
    for (whole, kept) in read(snapshot).iter().zip(read(&kept)) {
        assert_eq!(*whole, kept, "{of}");
    }
}

#[test]
fn what_is_kept_decides_as_the_whole_does_on_what_ray_was_asked() {
    let corpus = std::fs::File::open(root().join("tests/parity/corpus.jsonl.gz")).unwrap();
    let lines = BufReader::new(GzDecoder::new(corpus)).lines();
    for (number, line) in lines.enumerate().step_by(9) {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let snapshot: Snapshot = serde_json::from_value(case["snapshot"].clone()).unwrap();
        assert_same(&snapshot, &format!("case {number}"));
    }
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                yaml_files(&path)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect()
}

/// With a head that runs, and a demand for each kind of resource.
fn snapshot_of(cluster: Value) -> Snapshot {
    let pods = json!([{ "metadata": { "name": "h", "uid": "u", "labels": {
        "ray.io/cluster": cluster["metadata"]["name"].as_str().unwrap_or_default(), "ray.io/node-type": "head",
        "ray.io/group": "headgroup" } }, "status": { "phase": "Running" } }]);
    let tasks: Vec<Value> = ["CPU", "GPU", "memory", "TPU", "custom"]
        .iter()
        .map(|name| json!({ "count": 3, "request": { "resourcesBundle": { *name: 1.0 }, "labelSelectors": [{}] } }))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": cluster, "pods": pods,
        "gcs": { "pendingResourceRequests": tasks, "nodeStates": [{
            "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": "h",
            "rayNodeTypeName": "headgroup", "status": "RUNNING",
            "totalResources": { "node:__internal_head__": 1 } }] },
    }))
    .unwrap()
}

#[test]
fn what_is_kept_decides_as_the_whole_does_on_every_fixture() {
    let mut count = 0;
    for path in yaml_files(&root().join("tests/fixtures")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(mut object) = serde_saphyr::from_str::<Value>(&text) else {
            continue;
        };
        if object["kind"] != "RayCluster" {
            continue;
        }
        object["metadata"]["resourceVersion"] = json!("7");
        assert_same(&snapshot_of(object), &path.display().to_string());
        count += 1;
    }
    assert!(count > 200, "{count} RayClusters");
}

/// Every part that a RayCluster can have, filled in.
fn full() -> Value {
    let container = json!({
        "name": "ray", "image": "i", "command": ["c"], "args": ["a"], "workingDir": "w",
        "env": [{ "name": "n", "value": "v", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
        "envFrom": [{ "secretRef": { "name": "s" } }],
        "ports": [{ "name": "p", "protocol": "TCP", "containerPort": 1 }],
        "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": "1" }, "claims": [{ "name": "c", "request": "r" }] },
        "resizePolicy": [{ "resourceName": "cpu", "restartPolicy": "NotRequired" }],
        "volumeMounts": [{ "name": "v", "mountPath": "/m", "subPath": "s" }],
        "livenessProbe": { "exec": { "command": ["c"] }, "httpGet": { "path": "/", "httpHeaders": [{ "name": "n", "value": "v" }] } },
        "lifecycle": { "preStop": { "exec": { "command": ["c"] } } },
        "securityContext": { "seLinuxOptions": { "level": "l" } },
    });
    let template = json!({
        "metadata": { "labels": { "l": "v" }, "annotations": { "a": "v" } },
        "spec": {
            "containers": [container, container], "initContainers": [container],
            "nodeSelector": { "n": "v", "cloud.google.com/gke-tpu-topology": "2x2", "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice" },
            "volumes": [{ "name": "v", "secret": { "secretName": "s" }, "configMap": { "name": "c" } }],
            "serviceAccountName": "a", "imagePullSecrets": [{ "name": "s" }], "hostname": "h",
            "tolerations": [{ "key": "k", "value": "v" }], "priorityClassName": "p", "nodeName": "n",
            "affinity": { "nodeAffinity": { "a": "b" } }, "restartPolicy": "Never", "runtimeClassName": "r",
        },
    });
    let params = json!({ "num-cpus": "1", "num-gpus": "0", "memory": "1", "resources": "'{}'", "port": "6379",
        "redis-password": "p", "redis-username": "u", "dashboard-host": "h", "object-store-memory": "1",
        "system-config": "{}", "labels": "l" });
    let group = json!({
        "groupName": "cpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "numOfHosts": 1,
        "idleTimeoutSeconds": 1, "priority": 1, "suspend": false, "serviceType": "s",
        "labels": { "l": "v" }, "resources": { "CPU": "1" }, "rayStartParams": params, "template": template,
        "scaleStrategy": { "workersToDelete": ["w"] }, "headService": { "metadata": { "annotations": { "a": "v" } } },
        "ingressAnnotations": { "a": "v" },
    });
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {
            "name": "demo", "namespace": "ray", "uid": "u", "resourceVersion": "1", "generateName": "g",
            "creationTimestamp": "2026-01-14T12:00:00Z", "deletionTimestamp": "2026-01-14T12:00:00Z",
            "finalizers": ["f"], "labels": { "kueue.x-k8s.io/queue-name": "q", "team": "t" },
            "annotations": { "ray.io/ippr": "{}", "rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "nobody",
                "kueue.x-k8s.io/elastic-job": "true", "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "vault.example/token": "t", "ray.io/overwrite-container-cmd": "true" },
            "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayJob", "name": "j", "uid": "u" }],
            "managedFields": [{ "manager": "m", "fieldsV1": { "f:a": {} } }],
        },
        "spec": {
            "rayVersion": "2.60.0", "enableInTreeAutoscaling": true, "suspend": false, "managedBy": "m",
            "autoscalerOptions": { "version": "v2", "image": "i", "env": [{ "name": "n", "value": "v" }],
                "idleTimeoutSeconds": 60, "upscalingMode": "Default", "resources": { "limits": { "cpu": "1" } },
                "command": ["c"], "args": ["a"], "envFrom": [{ "secretRef": { "name": "s" } }] },
            "gcsFaultToleranceOptions": { "redisAddress": "r", "redisUsername": { "value": "u" },
                "redisPassword": { "value": "p", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
                "externalStorageNamespace": "n" },
            "authOptions": { "mode": "token", "secretName": "s", "other": "o" },
            "tlsOptions": { "enabled": true, "secretName": "s" },
            "headServiceAnnotations": { "a": "v" }, "upgradeStrategy": { "type": "Recreate" },
            "networkPolicy": { "mode": "m" },
            "headGroupSpec": group, "workerGroupSpecs": [group],
        },
        "status": { "state": "ready", "reason": "r", "head": { "podIP": "i", "podName": "n", "serviceIP": "s" },
            "endpoints": { "dashboard": "d" }, "conditions": [{ "message": "m" }] },
    })
}

/// Every text becomes a secret, and every object has one more.
fn planted(value: &Value) -> Value {
    match value {
        Value::String(_) => json!(SECRET),
        Value::Array(items) => items.iter().map(planted).collect(),
        Value::Object(fields) => {
            let mut fields: Map<String, Value> = fields
                .iter()
                .map(|(key, value)| (key.clone(), planted(value)))
                .collect();
            fields.insert("planted".to_owned(), json!(SECRET));
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

/// Where secrets are.
fn secrets(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.contains(SECRET) => {
            found.insert(at.to_owned());
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| secrets(item, &format!("{at}[]"), found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                secrets(value, &format!("{at}.{key}"), found);
            }
        }
        _ => {}
    }
}

/// The texts of a group that may go out.
const OF_GROUP: &[&str] = &[
    "groupName",
    "labels.l",
    "labels.planted",
    "rayStartParams.memory",
    "rayStartParams.num-cpus",
    "rayStartParams.num-gpus",
    "rayStartParams.port",
    "rayStartParams.resources",
    "resources.CPU",
    "resources.planted",
    "scaleStrategy.workersToDelete[]",
    "template.spec.containers[].name",
    "template.spec.containers[].resizePolicy[].resourceName",
    "template.spec.containers[].resizePolicy[].restartPolicy",
    "template.spec.containers[].resources.limits.cpu",
    "template.spec.containers[].resources.limits.planted",
    "template.spec.containers[].resources.requests.cpu",
    "template.spec.containers[].resources.requests.planted",
    "template.spec.nodeSelector.cloud.google.com/gke-tpu-accelerator",
    "template.spec.nodeSelector.cloud.google.com/gke-tpu-topology",
    "template.spec.nodeSelector.n",
    "template.spec.nodeSelector.planted",
];

/// The other texts that may.
const OF_CLUSTER: &[&str] = &[
    ".apiVersion",
    ".kind",
    ".metadata.annotations.kueue.x-k8s.io/elastic-job",
    ".metadata.annotations.ray.io/ippr",
    ".metadata.annotations.rayfit.dev/reconcile",
    ".metadata.annotations.rayfit.dev/scaled-by",
    ".metadata.creationTimestamp",
    ".metadata.deletionTimestamp",
    ".metadata.finalizers[]",
    ".metadata.labels.kueue.x-k8s.io/queue-name",
    ".metadata.labels.planted",
    ".metadata.labels.team",
    ".metadata.name",
    ".metadata.namespace",
    ".metadata.ownerReferences[].apiVersion",
    ".metadata.ownerReferences[].kind",
    ".metadata.ownerReferences[].name",
    ".metadata.ownerReferences[].uid",
    ".metadata.resourceVersion",
    ".metadata.uid",
    ".spec.authOptions.mode",
    ".spec.authOptions.secretName",
    ".spec.autoscalerOptions.upscalingMode",
    ".spec.managedBy",
    ".spec.rayVersion",
    ".status.head.podIP",
    ".status.state",
];

fn on_the_list() -> BTreeSet<String> {
    let groups = [".spec.headGroupSpec.", ".spec.workerGroupSpecs[]."];
    let groups = groups
        .iter()
        .flat_map(|group| OF_GROUP.iter().map(move |at| format!("{group}{at}")));
    groups
        .chain(OF_CLUSTER.iter().map(|at| (*at).to_owned()))
        .collect()
}

#[test]
fn no_secret_leaves_but_in_a_field_on_the_list() {
    let mut found = BTreeSet::new();
    secrets(&RAY_CLUSTER.keep(&planted(&full())), "", &mut found);
    assert_eq!(found, on_the_list());
}

#[test]
fn nor_in_the_place_of_a_number_or_below_a_field_on_the_list() {
    fn bent(value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), bent(value)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.iter().map(bent).collect(),
            _ => json!({ "value": SECRET, "list": [SECRET] }),
        }
    }
    let kept = RAY_CLUSTER.keep(&bent(&full()));
    assert!(!kept.to_string().contains(SECRET), "{kept}");
}
