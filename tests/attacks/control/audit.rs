//! Faults and odd objects before the audit: what it found is written nevertheless, and soon.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use rayfit::apiserver::Informers;
use rayfit::audit;
use rayfit::policy::{EffectivePolicy, Policies};
use rayfit::raypolicy::compile;
use rayfit::telemetry::Metrics;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::api::{Api, Call, Fault, Played};
use super::clusters::{CLUSTERS, soon};

const POLICIES: &str = "/apis/rayfit.dev/v1alpha1/raypolicies";
const REPORTS: &str = "/apis/openreports.io/v1alpha1/reports";

fn limits() -> Value {
    json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
        "metadata": { "name": "limits", "generation": 1 },
        "spec": { "limits": { "maxWorkersPerCluster": 3 } }
    })
}

/// A RayCluster with so many workers; more than three are too many.
fn cluster(namespace: &str, name: &str, workers: u32) -> Value {
    let size = json!({ "cpu": "1", "memory": "2Gi" });
    let pod = json!({ "spec": { "containers": [
        { "name": "ray", "image": "ray:2.60.0", "resources": { "limits": size, "requests": size } }
    ] } });
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "namespace": namespace, "name": name },
        "spec": {
            "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": pod },
            "workerGroupSpecs": [{
                "groupName": "cpu", "replicas": workers, "minReplicas": 0, "maxReplicas": workers,
                "rayStartParams": {}, "template": pod
            }]
        }
    })
}

/// A replica that audits under the policy `limits`. Policies and facts never change, so that no
/// sweep begins anew because of them.
fn auditing(api: &Api) -> JoinHandle<()> {
    let stored = api.played.put(POLICIES, limits());
    let (compiled, faults) = compile(&compile::read(&stored).unwrap());
    assert_eq!(faults, []);
    let policy = EffectivePolicy {
        policies: Policies::new(compiled.into_iter().collect()),
        ..EffectivePolicy::default()
    };
    let options = audit::AuditOptions {
        namespace: "rayfit-system".to_owned(),
        identity: "a".to_owned(),
    };
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let policy = Arc::new(ArcSwap::from_pointee(policy));
    let informers = Informers::new(api.server().client(), metrics.watches.clone());
    tokio::spawn(audit::run(informers, options, policy, metrics))
}

fn status(played: &Played) -> Value {
    let policy = played.get(POLICIES, "", "limits").unwrap();
    policy["status"].clone()
}

/// The rules that the report of a RayCluster names.
fn reported(played: &Played, namespace: &str, name: &str) -> Vec<String> {
    let report = played.get(REPORTS, namespace, &format!("rayfit-raycluster-{name}"));
    let results = report.map(|report| report["results"].clone());
    let results = results.as_ref().and_then(Value::as_array);
    let rule = |result: &Value| result["rule"].as_str().unwrap().to_owned();
    results.into_iter().flatten().map(rule).collect()
}

/// The first such request is answered with 429, all others as always.
fn refuse_first(api: &Api, hit: fn(&Call) -> bool) {
    let mut is_refused = false;
    api.played.faults(move |call| {
        let first = !is_refused && hit(call);
        is_refused |= first;
        first.then_some(Fault::Status(429, Some(1)))
    });
}

#[tokio::test]
async fn what_was_refused_once_is_tried_again_without_any_change() {
    let refusals: [fn(&Call) -> bool; 4] = [
        |call| (call.verb, &*call.resource) == ("list", "reports"),
        |call| (call.verb, &*call.resource) == ("patch", "reports"),
        |call| (call.verb, &*call.resource) == ("list", "raypolicies"),
        |call| (&*call.resource, &*call.subresource) == ("raypolicies", "status"),
    ];
    let cases = refusals.into_iter().map(|refusal| async move {
        let api = Api::start().await;
        api.played.put(CLUSTERS, cluster("team-a", "ray", 5));
        api.played.put(CLUSTERS, cluster("team-b", "ray", 1));
        refuse_first(&api, refusal);
        let auditing = auditing(&api);
        soon("the report is written", || {
            reported(&api.played, "team-a", "ray").contains(&"RF501".to_owned())
        })
        .await;
        soon("the status is written", || {
            let status = status(&api.played);
            status["objects"] == 2 && status["denied"] == 1
        })
        .await;
        auditing.abort();
    });
    join_all(cases).await;
}

/// What cannot be listed is unknown, which is not the same as gone.
#[tokio::test]
async fn a_list_that_fails_takes_nobodys_report_away() {
    let api = Api::start().await;
    api.played.put(CLUSTERS, cluster("team-a", "ray", 5));
    api.played.put(
        REPORTS,
        json!({
            "apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": {
                "namespace": "team-a", "name": "rayfit-raycluster-ray",
                "labels": { "app.kubernetes.io/managed-by": "rayfit" }
            }
        }),
    );
    let mut failures = 4;
    api.played.faults(move |call| {
        let hit = (call.verb, &*call.resource) == ("list", "rayclusters") && failures > 0;
        failures -= i32::from(hit);
        hit.then_some(Fault::Status(500, None))
    });
    let auditing = auditing(&api);
    soon("the report is written", || {
        reported(&api.played, "team-a", "ray").contains(&"RF501".to_owned())
    })
    .await;
    assert_eq!(api.played.calls("delete", "reports"), []);
    auditing.abort();
}

#[tokio::test]
async fn an_object_without_a_spec_ends_the_audit_of_nobody_else() {
    let api = Api::start().await;
    let odd = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "namespace": "team-a", "name": "empty" }
    });
    let mut odder = odd.clone();
    odder["metadata"]["name"] = json!("odder");
    odder["spec"] = json!(5);
    api.played.put(CLUSTERS, odd.clone());
    api.played.put(CLUSTERS, odder);
    api.played.put(CLUSTERS, cluster("team-b", "ray", 5));
    let auditing = auditing(&api);
    soon("the neighbour is judged", || {
        reported(&api.played, "team-b", "ray").contains(&"RF501".to_owned())
    })
    .await;
    soon("so is the object", || {
        reported(&api.played, "team-a", "empty").contains(&"RF230".to_owned())
    })
    .await;
    // And while all are watched.
    let mut late = odd;
    late["metadata"]["name"] = json!("late");
    api.played.put(CLUSTERS, late);
    api.played.put(CLUSTERS, cluster("team-c", "ray", 4));
    soon("a later one is judged, too", || {
        reported(&api.played, "team-c", "ray").contains(&"RF501".to_owned())
    })
    .await;
    soon("all are counted", || {
        status(&api.played)["rules"]
            .as_array()
            .is_some_and(|rules| {
                let count = |rule: &Value| rule["rule"] == "RF501" && rule["denied"] == 2;
                rules.iter().any(count)
            })
    })
    .await;
    auditing.abort();
}
