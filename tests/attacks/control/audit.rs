//! Faults and odd objects before the audit: what it found is written nevertheless, and soon. Time is
//! virtual.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use rayfit::apiserver::Informers;
use rayfit::audit;
use rayfit::telemetry::Metrics;
use rayfit::watch;
use rayfit_core::manifests::{ManifestOptions, webhooks};
use rayfit_core::policy::{EffectivePolicy, Policies};
use rayfit_core::raypolicy::compile;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::clusters::{CLUSTERS, soon};
use super::policies::POLICIES;
use crate::played_api::{Call, Fault, PlayedApi};

const NAMESPACES: &str = "/api/v1/namespaces";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
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
fn auditing(api: &PlayedApi) -> JoinHandle<()> {
    let stored = api.store(POLICIES, limits());
    let (compiled, faults) = compile(&compile::read(&stored).unwrap());
    assert_eq!(faults, []);
    let policy = EffectivePolicy {
        policies: Policies::new(compiled.into_iter().collect()),
        ..EffectivePolicy::default()
    };
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let policy = Arc::new(ArcSwap::from_pointee(policy));
    let informers = Informers::new(api.server().client, metrics.watches.clone());
    let known = Arc::new(AtomicBool::new(true));
    tokio::spawn(audit::run(informers, options(), policy, known, metrics))
}

fn options() -> audit::AuditOptions {
    audit::AuditOptions {
        namespace: "rayfit-system".to_owned(),
        identity: "a".to_owned(),
    }
}

/// A replica that starts: it reads the policies, and audits.
fn starting(api: &PlayedApi) -> JoinHandle<()> {
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let policy: Arc<ArcSwap<EffectivePolicy>> = Arc::default();
    let known = Arc::new(AtomicBool::new(false));
    let informers = Informers::new(api.server().client, metrics.watches.clone());
    let watching = watch::run(informers.clone(), policy.clone(), known.clone());
    let auditing = audit::run(informers, options(), policy, known, metrics);
    tokio::spawn(async move { tokio::join!(watching, auditing).0 })
}

fn status(api: &PlayedApi) -> Value {
    let policy = api.get(&format!("{POLICIES}/limits")).unwrap();
    policy["status"].clone()
}

/// The rules that the report of a RayCluster names.
fn reported(api: &PlayedApi, namespace: &str, name: &str) -> Vec<String> {
    let report = api.get(&format!(
        "/apis/openreports.io/v1alpha1/namespaces/{namespace}/reports/rayfit-raycluster-{name}"
    ));
    let results = report.map(|report| report["results"].clone());
    let results = results.as_ref().and_then(Value::as_array);
    let rule = |result: &Value| result["rule"].as_str().unwrap().to_owned();
    results.into_iter().flatten().map(rule).collect()
}

/// The first such request is answered with 429, all others as always.
fn refuse_first(api: &PlayedApi, hit: fn(&Call) -> bool) {
    let mut is_refused = false;
    api.faults(move |call| {
        let first = !is_refused && hit(call);
        is_refused |= first;
        first.then_some(Fault::Status(429, Some(1)))
    });
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_once_is_tried_again_without_any_change() {
    let refusals: [fn(&Call) -> bool; 4] = [
        |call| (call.verb, &*call.resource) == ("list", "reports"),
        |call| (call.verb, &*call.resource) == ("patch", "reports"),
        |call| (call.verb, &*call.resource) == ("list", "raypolicies"),
        |call| (&*call.resource, &*call.subresource) == ("raypolicies", "status"),
    ];
    let cases = refusals.into_iter().map(|refusal| async move {
        let api = PlayedApi::default();
        api.store(CLUSTERS, cluster("team-a", "ray", 5));
        api.store(CLUSTERS, cluster("team-b", "ray", 1));
        refuse_first(&api, refusal);
        let auditing = auditing(&api);
        soon("the report is written", || {
            reported(&api, "team-a", "ray").contains(&"RF501".to_owned())
        })
        .await;
        soon("the status is written", || {
            let status = status(&api);
            status["objects"] == 2 && status["denied"] == 1
        })
        .await;
        auditing.abort();
    });
    join_all(cases).await;
}

/// What cannot be listed is unknown, which is not the same as gone.
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_takes_nobodys_report_away() {
    let api = PlayedApi::default();
    api.store(CLUSTERS, cluster("team-a", "ray", 5));
    api.store(
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
    api.faults(move |call| {
        let hit = (call.verb, &*call.resource) == ("list", "rayclusters") && failures > 0;
        failures -= i32::from(hit);
        hit.then_some(Fault::Status(500, None))
    });
    let auditing = auditing(&api);
    soon("the report is written", || {
        reported(&api, "team-a", "ray").contains(&"RF501".to_owned())
    })
    .await;
    assert_eq!(api.calls("delete", "reports"), []);
    auditing.abort();
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_spec_ends_the_audit_of_nobody_else() {
    let api = PlayedApi::default();
    let odd = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "namespace": "team-a", "name": "empty" }
    });
    let mut odder = odd.clone();
    odder["metadata"]["name"] = json!("odder");
    odder["spec"] = json!(5);
    api.store(CLUSTERS, odd.clone());
    api.store(CLUSTERS, odder);
    api.store(CLUSTERS, cluster("team-b", "ray", 5));
    let auditing = auditing(&api);
    soon("the neighbour is judged", || {
        reported(&api, "team-b", "ray").contains(&"RF501".to_owned())
    })
    .await;
    soon("so is the object", || {
        reported(&api, "team-a", "empty").contains(&"RF230".to_owned())
    })
    .await;
    // And while all are watched.
    let mut late = odd;
    late["metadata"]["name"] = json!("late");
    api.store(CLUSTERS, late);
    api.store(CLUSTERS, cluster("team-c", "ray", 4));
    soon("a later one is judged, too", || {
        reported(&api, "team-c", "ray").contains(&"RF501".to_owned())
    })
    .await;
    soon("all are counted", || {
        status(&api)["rules"].as_array().is_some_and(|rules| {
            let count = |rule: &Value| rule["rule"] == "RF501" && rule["denied"] == 2;
            rules.iter().any(count)
        })
    })
    .await;
    auditing.abort();
}

/// Webhooks that fail closed because of the policy `strict`.
fn close(api: &PlayedApi) {
    let mut closed = webhooks::validating(&ManifestOptions::default());
    for webhook in closed["webhooks"].as_array_mut().unwrap() {
        webhook["failurePolicy"] = json!("Fail");
    }
    closed["metadata"]["annotations"]["rayfit.dev/fail-closed-by"] = json!("strict");
    api.store(VALIDATING, closed);
    api.store(NAMESPACES, json!({ "metadata": { "name": "team-a" } }));
    api.store(
        POLICIES,
        json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": { "name": "strict", "generation": 1 }, "spec": { "failClosed": true }
        }),
    );
}

/// Whether the policy `strict` is told that they fail closed.
fn is_told(api: &PlayedApi) -> bool {
    let policy = api.get(&format!("{POLICIES}/strict")).unwrap();
    let conditions = policy["status"]["conditions"].as_array().cloned();
    let is = |condition: &Value| condition["type"] == "FailClosed" && condition["status"] == "True";
    conditions.unwrap_or_default().iter().any(is)
}

/// While the policies cannot be read, it is not known that none makes the webhooks fail closed.
#[tokio::test(start_paused = true)]
async fn webhooks_that_fail_closed_stay_so_while_a_replica_does_not_know_the_policies() {
    let api = PlayedApi::default();
    close(&api);
    let mut failures = 3;
    api.faults(move |call| {
        let hit = call.resource == "raypolicies" && failures > 0;
        failures -= i32::from(hit);
        hit.then_some(Fault::Status(503, None))
    });
    let replica = starting(&api);
    soon("the policy is told that they fail closed", || is_told(&api)).await;
    let written = api.calls("patch", "validatingwebhookconfigurations");
    assert_eq!(written, [], "they were open in between");
    replica.abort();
}

/// What cannot be read now is as it was, as far as anybody knows.
#[tokio::test(start_paused = true)]
async fn a_failed_look_at_the_webhooks_takes_no_condition_away() {
    let api = PlayedApi::default();
    close(&api);
    let replica = starting(&api);
    soon("the policy is told that they fail closed", || is_told(&api)).await;
    let looks = || api.calls("get", "validatingwebhookconfigurations");
    api.faults(|call| {
        let hit = call.resource == "validatingwebhookconfigurations";
        hit.then_some(Fault::Status(503, None))
    });
    let before = looks().len();
    soon("two looks have failed", || {
        assert!(is_told(&api), "the condition is gone");
        looks().len() > before + 1
    })
    .await;
    replica.abort();
}
