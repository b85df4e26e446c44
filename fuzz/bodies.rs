//! What the targets of `fuzz_targets/` do with an input. `tests/core/fuzz.rs` gives them the inputs that the
//! tests have, with a compiler of any kind.

use rayfit_core::facts::Facts;
use rayfit_core::plan::check::check;
use rayfit_core::plan::{PlanSettings, Strategy, decide as plan};
use rayfit_core::policy::Settings;
use rayfit_core::ray::{Ippr, Kind, RayObject};
use rayfit_core::simulate::trace;
use rayfit_core::snapshot::Snapshot;
use serde_json::{Value, json};

/// The body of an admission request.
pub(crate) fn review(body: &[u8]) {
    let _ = rayfit::admission::review::Review::parse(body);
}

/// Any JSON as a Ray object, judged and defaulted: the patch must apply.
pub(crate) fn object(text: &[u8]) {
    let Ok(mut value) = serde_json::from_slice::<Value>(text) else {
        return;
    };
    let Some(root) = value.as_object() else {
        return;
    };
    let settings = Settings::default();
    let operations = {
        let object = RayObject::of_kind(Kind::RayCluster, root);
        rayfit_core::judge::judge(&object, None, None, &Facts::default(), &settings);
        rayfit_core::defaults::patch(&object, None, &settings).operations
    };
    json_patch::patch(&mut value, &operations).expect("the patch applies");
}

/// A manifest as `rayfit check` reads it.
pub(crate) fn yaml(text: &str) {
    let _ = rayfit_core::yaml::read(text);
}

/// The `ray.io/ippr` annotation and the quantities in it.
pub(crate) fn ippr(text: &str) {
    let _ = Ippr::parse(text);
    let _ = rayfit_core::quantity::Quantity::parse(text);
}

/// Any bytes as a GCS's answer: refused, or read.
pub(crate) fn answer(bytes: &[u8]) {
    let _ = rayfit::gcs::read_state(bytes);
}

/// A recorded workload of any form: refused, or a trace whose lines are read as the same jobs again.
pub(crate) fn trace(text: &str) {
    let Ok(read) = trace::read(text, "trace") else {
        return;
    };
    // A few bytes can stand for a million jobs.
    if read.jobs.len() > 10_000 {
        return;
    }
    let written: Vec<String> = trace::lines(&read).collect();
    let again = trace::read(&written.join("\n"), "trace").map(|again| again.jobs);
    assert_eq!(again.as_ref(), Ok(&read.jobs));
}

/// Any demand that a GCS may report, beside any limits: decided, and within what every plan keeps.
pub(crate) fn decide((numbers, bytes): ([i64; 6], &[u8])) {
    let Ok(state) = rayfit::gcs::read_state(bytes) else {
        return;
    };
    let mut snapshot = snapshot(numbers);
    let head = std::mem::take(&mut snapshot.gcs.node_states);
    snapshot.gcs = state;
    snapshot.gcs.node_states.extend(head);
    for strategy in [Strategy::Rayfit, Strategy::Ray] {
        let settings = PlanSettings {
            strategy,
            ..PlanSettings::default()
        };
        let (decided, _) = plan(&snapshot, &settings);
        let launched: u64 = decided.groups.iter().map(|group| group.launch).sum();
        assert!(launched <= settings.max_workers);
        assert!(strategy == Strategy::Ray || check(&snapshot, &decided).is_empty());
    }
}

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
