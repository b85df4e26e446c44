//! When a cluster that nobody uses ends, against recorded answers of Ray's own provider
//! (`tests/parity/idle_end.py`).

use std::path::Path;

use rayfit_core::plan::{PlanSettings, Strategy, decide};
use rayfit_core::snapshot::gcs::RayUsers;
use rayfit_core::snapshot::{History, Snapshot};
use serde_json::{Value, json};

/// A cluster whose head runs.
fn snapshot(timeout: &Value, now: f64, users: Option<RayUsers>, history: &History) -> Snapshot {
    let container = json!({"name": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}});
    let template = json!({"spec": {"containers": [container]}});
    let mut snapshot: Snapshot = serde_json::from_value(json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
        "time": rayfit_core::snapshot::moment(now),
        "rayCluster": {"metadata": {"name": "demo", "namespace": "ray"}, "spec": {
            "idleTerminationOptions": {"timeoutSeconds": timeout},
            "headGroupSpec": {"rayStartParams": {}, "template": template}, "workerGroupSpecs": [],
        }},
        "pods": [{"metadata": {"name": "h", "labels": {"ray.io/cluster": "demo",
            "ray.io/node-type": "head", "ray.io/group": "headgroup"}}, "status": {"phase": "Running"}}],
        "gcs": {"nodeStates": [{"nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
            "instanceId": "h", "rayNodeTypeName": "headgroup", "status": "IDLE",
            "totalResources": {"node:__internal_head__": 1}}]},
    }))
    .unwrap();
    snapshot.gcs.users = users;
    snapshot.history = history.clone();
    snapshot
}

/// The users as the client counts them.
fn users(jobs: &Value) -> Option<RayUsers> {
    let jobs = jobs.as_array()?;
    let internal = |job: &&Value| {
        !job["namespace"]
            .as_str()
            .unwrap()
            .starts_with("_ray_internal_")
    };
    let jobs: Vec<&Value> = jobs.iter().filter(internal).collect();
    let ended = jobs.iter().filter(|job| job["isDead"] == true);
    Some(RayUsers {
        drivers: jobs.iter().filter(|job| job["isDead"] == false).count() as u64,
        detached_actors: 1,
        last_job_end_ms: ended
            .map(|job| job["endTime"].as_u64().unwrap())
            .max()
            .unwrap_or(0),
    })
}

#[test]
fn a_cluster_ends_when_ray_ends_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/idle-end.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let settings = PlanSettings {
        strategy: Strategy::Ray,
        ..PlanSettings::default()
    };
    let mut ends = 0;
    for (number, case) in cases.iter().enumerate() {
        let mut history = History::default();
        for (round, of) in case["rounds"].as_array().unwrap().iter().enumerate() {
            let now = of["now"].as_f64().unwrap();
            let snapshot = snapshot(&case["timeoutSeconds"], now, users(&of["jobs"]), &history);
            let (plan, _) = decide(&snapshot, &settings);
            let ended = plan.end.is_some();
            assert_eq!(ended, of["ends"] == true, "case {number}, round {round}");
            ends += usize::from(ended);
            history = plan.remember;
        }
    }
    assert!(ends > 100, "{ends}");
}
