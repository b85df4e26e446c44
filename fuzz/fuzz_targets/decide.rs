//! Any demand that a GCS may report, beside any limits: decided, and within what every plan keeps.
#![no_main]

use rayfit::plan::check::check;
use rayfit::plan::{PlanSettings, Strategy, decide};
use rayfit::snapshot::Snapshot;
use serde_json::{Value, json};

libfuzzer_sys::fuzz_target!(|input: ([i64; 6], &[u8])| {
    let (numbers, bytes) = input;
    let Ok(state) = rayfit::gcs::read_state(bytes) else { return };
    let mut snapshot = snapshot(numbers);
    let head = std::mem::take(&mut snapshot.gcs.node_states);
    snapshot.gcs = state;
    snapshot.gcs.node_states.extend(head);
    for strategy in [Strategy::Rayfit, Strategy::Ray] {
        let settings = PlanSettings { strategy, ..PlanSettings::default() };
        let (plan, _) = decide(&snapshot, &settings);
        let launched: u64 = plan.groups.iter().map(|group| group.launch).sum();
        assert!(launched <= settings.max_workers);
        assert!(strategy == Strategy::Ray || check(&snapshot, &plan).is_empty());
    }
});

/// A head and a worker that run, and two groups of these limits.
fn snapshot(numbers: [i64; 6]) -> Snapshot {
    let size = json!({"cpu": 4, "memory": "4Gi"});
    let template = json!({"spec": {"containers": [{"name": "ray", "resources": {"requests": size, "limits": size}}]}});
    let group = |name: &str, numbers: &[i64]| {
        json!({"groupName": name, "minReplicas": numbers[0].min(numbers[1]), "maxReplicas": numbers[1],
            "replicas": numbers[2], "rayStartParams": {}, "template": template})
    };
    let pod = |name: &str, role: &str, group: &str| {
        json!({"metadata": {"name": name, "labels": {
            "ray.io/cluster": "demo", "ray.io/node-type": role, "ray.io/group": group}},
            "spec": template["spec"], "status": {"phase": "Running"}})
    };
    let head: Value = json!({"instanceId": "head", "rayNodeTypeName": "headgroup", "status": "RUNNING",
        "totalResources": {"node:__internal_head__": 1}});
    serde_json::from_value(json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": {"metadata": {"name": "demo"}, "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [group("a", &numbers[..3]), group("b", &numbers[3..])]}},
        "pods": [pod("head", "head", "headgroup"), pod("w-1", "worker", "a")],
        "gcs": {"nodeStates": [head]},
    }))
    .expect("it is a snapshot")
}
