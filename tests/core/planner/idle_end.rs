//! What becomes of a cluster that is to end, because nobody uses it, and may not be ended.

use rayfit_core::plan::{PlanSettings, Strategy, decide};
use rayfit_core::reconcile::effects::effect::EffectClass;
use rayfit_core::reconcile::effects::failure::ApiStatus;
use rayfit_core::reconcile::{Done, Effect, Failure, Reply, RoundMemory, RoundSettings, round};
use rayfit_core::snapshot::gcs::RayUsers;
use rayfit_core::snapshot::{History, Snapshot};
use serde_json::{Value, json};

/// Seconds since 1970 of the first moment.
const START: f64 = 1_768_392_000.0;

/// A cluster that nobody uses, with a worker that has been idle for long.
fn unused(policy: &str, later: f64, history: &History) -> Snapshot {
    let container = json!({"name": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}});
    let template = json!({"spec": {"containers": [container]}});
    let pod = |name: &str, kind: &str, group: &str| {
        json!({"metadata": {"name": name, "namespace": "ray", "uid": name,
            "creationTimestamp": rayfit_core::snapshot::moment(START - 3600.0), "labels": {
            "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group},
            "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
                "uid": "u", "controller": true}]},
            "status": {"phase": "Running"}})
    };
    let node = |id: &str, name: &str, group: &str, total: Value| {
        json!({"nodeId": id, "instanceId": name,
            "rayNodeTypeName": group, "status": "IDLE", "idleDurationMs": "3600000",
            "totalResources": total, "availableResources": total})
    };
    let mut snapshot: Snapshot = serde_json::from_value(json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
        "time": rayfit_core::snapshot::moment(START + later),
        "rayCluster": {"metadata": {"name": "demo", "namespace": "ray", "uid": "u", "resourceVersion": "7"},
            "spec": {
            "idleTerminationOptions": {"timeoutSeconds": 30, "policy": policy},
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 2,
                "rayStartParams": {}, "template": template}],
        }},
        "pods": [pod("h", "head", "headgroup"), pod("w", "worker", "cpu")],
        "gcs": {"nodeStates": [node("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "h", "headgroup", json!({"node:__internal_head__": 1})),
            node("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "w", "cpu", json!({"CPU": 1}))]},
    }))
    .unwrap();
    snapshot.gcs.users = Some(RayUsers::default());
    snapshot.history = history.clone();
    snapshot
}

#[test]
fn a_cluster_that_may_not_be_ended_is_scaled_meanwhile() {
    let refused = |code, reason: &str| {
        Failure::Api(ApiStatus {
            code,
            reason: reason.to_owned(),
            message: "no".to_owned(),
            causes: Vec::new(),
            retry_after_s: None,
        })
    };
    for (policy, code, reason) in [
        ("Delete", 403, "Forbidden"),
        ("Suspend", 422, "Invalid"),
        ("Suspend", 500, "InternalError"),
    ] {
        let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
        let (mut ends, mut drains) = (0, 0);
        for later in 0..200_u32 {
            let now = f64::from(later);
            let snapshot = unused(policy, now, &memory.history);
            let planned = round(&snapshot, &memory, &settings);
            let mut done = Vec::new();
            for mut chain in planned.chains.clone() {
                while let Some(effect) = chain.next() {
                    let ended = effect.class() == EffectClass::End;
                    ends += u32::from(ended);
                    let drained = matches!(effect, Effect::Drain(_)) && ends > 0;
                    drains += u32::from(drained);
                    let result = if ended {
                        Err(refused(code, reason))
                    } else {
                        Ok(Reply::Ok)
                    };
                    chain.answered(result.as_ref(), START + now);
                    let about = chain.about.clone();
                    done.push(Done {
                        about,
                        effect,
                        result,
                    });
                }
            }
            memory.fold(&planned, &done, &settings, START + now, || 0.5);
        }
        assert!(
            (1..=20).contains(&ends),
            "{policy}, {code}: tried {ends} times"
        );
        assert!(
            drains > 0,
            "{policy}, {code}: the idle worker stays for ever"
        );
    }
}

#[test]
fn the_reason_names_what_counted_as_use() {
    for (strategy, text) in [
        (Strategy::Rayfit, "neither a driver nor a detached actor"),
        (Strategy::Ray, "no driver; detached actors do not count"),
    ] {
        let settings = PlanSettings {
            strategy,
            ..PlanSettings::default()
        };
        let (first, _) = decide(&unused("Suspend", 0.0, &History::default()), &settings);
        let (plan, _) = decide(&unused("Suspend", 30.0, &first.remember), &settings);
        let said = plan.end.unwrap().to_string();
        assert!(said.contains(text), "{said}");
    }
}
