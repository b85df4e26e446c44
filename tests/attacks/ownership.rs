//! Whose pod it is. Somebody in another namespace labels pods as if they were the victim's, or two
//! teams call their clusters alike: whatever such pods look like, the victim is decided on as if
//! they were not there.

use std::io::Read as _;

use rayfit::controller::head::address::head;
use rayfit::controller::observe::Key;
use rayfit::controller::observe::kept::{KeptObject, StoredKind};
use rayfit_core::plan::check::{Violation, check};
use rayfit_core::plan::{PlanSettings, Strategy, decide};
use rayfit_core::reconcile::{Blind, Ineligible, ScalerRole, eligibility};
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::{ClusterId, OwnPods, Snapshot};
use serde_json::{Value, json};

const UID: &str = "11111111-aaaa";

/// A quarter of a percent of the recorded snapshots are enough to have every kind of object.
fn recorded() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/corpus.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let lines = text.lines().step_by(9);
    let snapshot = |line: &str| serde_json::from_str::<Value>(line).unwrap()["snapshot"].take();
    lines.map(snapshot).collect()
}

/// The same as a live cluster has it: with a UID, and pods that are controlled by it.
fn live(mut snapshot: Value) -> Value {
    snapshot["rayCluster"]["metadata"]["uid"] = json!(UID);
    snapshot["rayCluster"]["metadata"]["namespace"] = json!("victim");
    let name = snapshot["rayCluster"]["metadata"]["name"].clone();
    for pod in snapshot["pods"].as_array_mut().into_iter().flatten() {
        pod["metadata"]["namespace"] = json!("victim");
        pod["metadata"]["ownerReferences"] = owner(&name, UID);
    }
    snapshot
}

fn owner(name: &Value, uid: &str) -> Value {
    json!([{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": uid, "controller": true}])
}

/// Pods like the victim's own that are not its own, each by another trick, and a head that the
/// attacker wants to be asked.
fn foreign(snapshot: &Value) -> Vec<Value> {
    let own = snapshot["pods"].as_array().unwrap();
    let name = &snapshot["rayCluster"]["metadata"]["name"];
    let mut pods = Vec::new();
    for (number, pod) in own.iter().enumerate() {
        let mut copy = pod.clone();
        let meta = &mut copy["metadata"];
        match number % 4 {
            // A namesake in another namespace, on the same node.
            0 => {
                meta["namespace"] = json!("other");
                meta["ownerReferences"] = owner(name, "22222222-bbbb");
            }
            // The right owner in the wrong namespace.
            1 => meta["namespace"] = json!("other"),
            // In the right namespace, with nothing but the label.
            2 => meta["ownerReferences"] = json!([]),
            // What is left of the cluster that had the name before.
            _ => meta["ownerReferences"] = owner(name, "00000000-0000"),
        }
        if number % 2 == 0 {
            meta["name"] = json!(format!("postgres-{number}"));
        }
        // It is no load, so that nothing at all may change.
        copy["spec"]["nodeName"] = Value::Null;
        pods.push(copy);
    }
    pods.push(json!({
        "metadata": {"name": "attacker", "namespace": "other", "labels": {
            "ray.io/cluster": name, "ray.io/node-type": "head", "ray.io/group": "headgroup"}},
        "spec": {"containers": [{"name": "autoscaler", "image": "rayproject/ray:2.60.0"}]},
        "status": {"phase": "Running", "podIP": "203.0.113.66"},
    }));
    pods
}

#[test]
fn pods_of_others_change_no_decision() {
    let mut decided = 0;
    for snapshot in recorded() {
        let alone = live(snapshot);
        let mut beside = alone.clone();
        let added = foreign(&alone);
        beside["pods"].as_array_mut().unwrap().splice(0..0, added);
        let alone: Snapshot = serde_json::from_value(alone).unwrap();
        let beside: Snapshot = serde_json::from_value(beside).unwrap();
        assert_eq!(alone.pods, beside.pods);
        for strategy in [Strategy::Ray, Strategy::Rayfit] {
            let settings = PlanSettings {
                strategy,
                pending_idle_timeout_s: Some(60.0),
                ..PlanSettings::default()
            };
            let (plan, report) = decide(&alone, &settings);
            let (other, other_report) = decide(&beside, &settings);
            assert_eq!(json!(plan), json!(other), "{}", alone.title());
            assert_eq!(json!(report), json!(other_report), "{}", alone.title());
            decided += usize::from(!plan.is_quiet());
        }
    }
    assert!(decided > 50, "only {decided} of the plans do anything");
}

#[test]
fn a_plan_that_names_a_foreign_pod_is_refused() {
    let mut refused = 0;
    for snapshot in recorded() {
        let snapshot: Snapshot = serde_json::from_value(live(snapshot)).unwrap();
        let (mut plan, _) = decide(&snapshot, &PlanSettings::default());
        let Some(deletion) = plan
            .groups
            .iter_mut()
            .find_map(|group| group.delete.first_mut())
        else {
            continue;
        };
        deletion.pod = "postgres-0".to_owned();
        let violations = check(&snapshot, &plan);
        let foreign = |one: &Violation| matches!(one, Violation::DeletesForeign { pod, .. } if pod == "postgres-0");
        assert!(violations.iter().any(foreign), "{violations:?}");
        refused += 1;
    }
    assert!(refused > 3, "only {refused} plans delete anything");
}

fn cluster() -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"namespace": "victim", "name": "ray", "uid": UID,
            "annotations": {"rayfit.dev/reconcile": "central"}},
        "spec": {"enableInTreeAutoscaling": true, "authOptions": {"mode": "token"}},
    })
}

/// A head pod as KubeRay makes it, with Ray's autoscaler in the container that `scaler` says.
fn head_pod(namespace: &str, uid: &str, containers: &Value) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": "ray-head", "uid": "p", "labels": {
            "ray.io/cluster": "ray", "ray.io/node-type": "head", "ray.io/group": "headgroup"},
            "ownerReferences": owner(&json!("ray"), uid)},
        "spec": {"restartPolicy": "Never", "containers": containers},
        "status": {"phase": "Running", "podIP": "203.0.113.66"},
    })
}

/// Through what is really kept of a pod that is watched.
fn seen(pods: &[Value]) -> OwnPods {
    let kept = (pods.iter()).map(|pod| KeptObject::of(StoredKind::Pods, pod));
    let read = kept.map(|pod| serde_json::from_slice::<PodObject>(&pod.json).unwrap());
    OwnPods::divide(ClusterId::of(&cluster()), read).0
}

fn judged(pods: &[Value]) -> Result<(), Ineligible> {
    eligibility(
        &cluster(),
        &seen(pods),
        &ScalerRole::central("rayfit-system"),
        |image| image == "rayfit",
    )
}

#[test]
fn no_token_goes_to_an_address_that_is_not_an_own_head_pods() {
    let key = Key::new("victim", "ray").unwrap();
    let containers = json!([{"name": "ray-head"}]);
    for (namespace, uid) in [("other", UID), ("victim", "before"), ("other", "before")] {
        let pods = seen(&[head_pod(namespace, uid, &containers)]);
        assert_eq!(head(&key, &cluster(), &pods), Err(Blind::NoHead));
    }
    let pods = seen(&[head_pod("victim", UID, &containers)]);
    assert!(head(&key, &cluster(), &pods).unwrap().token.is_some());
}

#[test]
fn a_foreign_container_called_autoscaler_stops_nobody() {
    let rays = json!([{"name": "autoscaler", "image": "rayproject/ray:2.60.0"}]);
    assert_eq!(judged(&[head_pod("other", UID, &rays)]), Ok(()));
    assert_eq!(judged(&[head_pod("victim", "before", &rays)]), Ok(()));
    let own = judged(&[head_pod("victim", UID, &rays)]);
    assert!(
        matches!(own, Err(Ineligible::OtherScaler { .. })),
        "{own:?}"
    );
}

/// Both need fields that were once dropped on the way: what a container runs, and whether it is
/// started again.
#[test]
fn a_second_autoscaler_is_found_by_what_it_runs_and_forgotten_when_it_is_over() {
    let hidden = json!([{"name": "helper", "image": "ray", "command": ["/bin/bash", "-c", "--"],
        "args": ["ray kuberay-autoscaler --cluster-name ray --redis-password s3cret"]}]);
    let mut pod = head_pod("victim", UID, &hidden);
    let found = judged(std::slice::from_ref(&pod));
    assert!(
        matches!(found, Err(Ineligible::OtherScaler { .. })),
        "{found:?}"
    );
    pod["status"]["containerStatuses"] =
        json!([{"name": "helper", "state": {"terminated": {"exitCode": 1}}}]);
    assert_eq!(
        judged(std::slice::from_ref(&pod)),
        Ok(()),
        "it is not started again"
    );
    pod["spec"]["restartPolicy"] = json!("Always");
    assert_ne!(judged(&[pod]), Ok(()), "it is");
}
