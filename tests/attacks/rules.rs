//! Who may write one Ray object tries to get more than the rules and the policies give: each is denied
//! as an honest object would be, and honest objects pass beside it.

use std::sync::Arc;

use rayfit::admission::AdmissionLimits;
use rayfit_core::facts::Facts;
use rayfit_core::judge::judge;
use rayfit_core::policy::settings::KUBERAY_OPERATOR;
use rayfit_core::policy::{EffectivePolicy, Policies, Settings};
use rayfit_core::ray::RayObject;
use rayfit_core::raypolicy::compile;
use serde_json::{Value, json};

use crate::review_support::{Alone, Server, bad_cluster, cluster, create, serving, update};

/// A server under RayPolicies with these specs.
pub(crate) fn server(policies: &[Value]) -> Server {
    let compiled = policies.iter().enumerate().map(|(index, spec)| {
        let written = compile::read(&policy(&format!("p{index}"), spec)).unwrap();
        let (policy, faults) = compile(&written);
        assert_eq!(faults, []);
        policy.unwrap()
    });
    let policy = EffectivePolicy {
        policies: Policies::new(compiled.collect()),
        ..EffectivePolicy::default()
    };
    serving(policy, AdmissionLimits::default(), Arc::new(Alone))
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
        "metadata": {"name": name}, "spec": spec})
}

/// Why a request is denied; empty if it is allowed.
pub(crate) async fn denied(server: &Server, review: &Value) -> String {
    let response = server.ask("/validate", review).await;
    let message = response["status"]["message"].as_str().unwrap_or_default();
    assert_eq!(response["allowed"], message.is_empty(), "{response}");
    message.to_owned()
}

async fn warned(server: &Server, review: &Value) -> String {
    let response = server.ask("/validate", review).await;
    assert_eq!(response["allowed"], true, "{response}");
    response["warnings"].to_string()
}

/// A RayCronJob like KubeRay's: it goes on making jobs while a finalizer holds it.
fn cron_job(cluster: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCronJob",
        "metadata": {"name": "nightly", "namespace": "ml"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"entrypoint": "python x.py",
            "rayClusterSpec": cluster["spec"]}},
    })
}

fn deleting(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = json!(["mallory.example/hold", "ray.io/gcs"]);
    object
}

/// A cluster whose autoscaling cannot work (RF203): denied by any webhook.
fn broken() -> Value {
    let mut object = cluster();
    object["spec"]["enableInTreeAutoscaling"] = true.into();
    object["spec"]["workerGroupSpecs"][0]["rayStartParams"]["num-cpus"] = "many".into();
    object
}

#[tokio::test]
async fn a_finalizer_on_what_is_being_deleted_switches_no_rule_off() {
    let server = server(&[]);
    for (good, bad) in [
        (cluster(), broken()),
        (cron_job(&cluster()), cron_job(&broken())),
    ] {
        let (old, new) = (deleting(&good), deleting(&bad));
        let message = denied(&server, &update(&new, &old)).await;
        assert!(message.contains("RF204"), "{message}");
        // One of two finalizers goes, and the spec with it.
        let mut fewer = new;
        fewer["metadata"]["finalizers"] = json!(["mallory.example/hold"]);
        let message = denied(&server, &update(&fewer, &old)).await;
        assert!(message.contains("RF204"), "{message}");
    }
}

#[tokio::test]
async fn what_is_being_deleted_can_always_lose_its_finalizers() {
    let server = server(&[]);
    let old = deleting(&broken());
    let mut patched = old.clone();
    patched["metadata"]["finalizers"] = json!(["mallory.example/hold"]);
    assert_eq!(denied(&server, &update(&patched, &old)).await, "");
    // The last one goes, whatever else the request says: the object is gone with it.
    for finalizers in [json!([]), Value::Null] {
        let mut last = deleting(&cluster());
        let old = last.clone();
        last["spec"] = bad_cluster()["spec"].clone();
        last["metadata"]["finalizers"] = finalizers;
        assert_eq!(denied(&server, &update(&last, &old)).await, "");
    }
    // KubeRay's operator writes the whole object back, as its version of the types has it.
    let old = deleting(&cluster());
    let mut by_operator = deleting(&broken());
    by_operator["metadata"]["finalizers"] = json!(["mallory.example/hold"]);
    let mut review = update(&by_operator, &old);
    review["request"]["userInfo"]["username"] = KUBERAY_OPERATOR.into();
    assert_eq!(denied(&server, &review).await, "");
}

/// What the API server asks about, in words of its own: webhooks and `rayfit vap` alike.
#[test]
fn the_api_server_asks_about_what_is_being_deleted_unless_it_ends() {
    let options = rayfit_core::vap::VapOptions::default();
    let policies = rayfit_core::vap::objects(&options);
    let conditions = policies
        .iter()
        .filter(|object| object["kind"] == "ValidatingAdmissionPolicy")
        .map(|object| object["spec"]["matchConditions"].to_string());
    let webhooks = rayfit_core::manifests::webhooks::validating(
        &rayfit_core::manifests::ManifestOptions::default(),
    );
    let webhooks = webhooks["webhooks"].as_array().unwrap().iter();
    let webhooks = webhooks
        .filter(|hook| hook["rules"][0]["apiGroups"][0] == "ray.io")
        .map(|hook| hook["matchConditions"].to_string());
    let all: Vec<String> = conditions.chain(webhooks).collect();
    assert!(all.len() > 50, "{}", all.len());
    for conditions in all {
        assert!(
            conditions.contains("object.metadata.finalizers.size() > 0"),
            "{conditions}"
        );
        assert!(
            conditions.contains("object.spec != oldObject.spec"),
            "{conditions}"
        );
        assert!(!conditions.contains("not-being-deleted"), "{conditions}");
    }
}

#[tokio::test]
async fn an_annotation_that_a_rule_reads_is_judged_when_it_goes() {
    let server = server(&[]);
    let mut old = cluster();
    old["spec"]["enableInTreeAutoscaling"] = true.into();
    old["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "research"});
    old["metadata"]["annotations"] = json!({"kueue.x-k8s.io/elastic-job": "true", "x": "1"});
    assert!(!warned(&server, &create(&old)).await.contains("RF219"));
    let mut new = old.clone();
    new["metadata"]["annotations"]["x"] = "2".into();
    assert!(!warned(&server, &update(&new, &old)).await.contains("RF219"));
    new["metadata"]["annotations"] = json!({"x": "1"});
    assert!(warned(&server, &update(&new, &old)).await.contains("RF219"));
}

#[tokio::test]
async fn an_object_without_a_spec_is_made_by_nobody_and_bars_nobody() {
    let server = server(&[]);
    for kind in rayfit_core::ray::Kind::ALL {
        let mut object = json!({"apiVersion": "ray.io/v1", "kind": kind.name(),
            "metadata": {"name": "empty", "namespace": "ml"}});
        let message = denied(&server, &create(&object)).await;
        assert!(message.contains("RF230"), "{message}");
        // One that was stored before can be labelled, held and let go.
        let old = object.clone();
        object["metadata"]["labels"] = json!({"team": "a"});
        assert!(
            warned(&server, &update(&object, &old))
                .await
                .contains("RF230")
        );
        let whole = cluster();
        if kind == rayfit_core::ray::Kind::RayCluster {
            let lost = denied(&server, &update(&old, &whole)).await;
            assert!(lost.contains("RF230"), "{lost}");
            assert_eq!(denied(&server, &update(&whole, &old)).await, "");
        }
    }
}

#[tokio::test]
async fn an_admin_is_told_of_limits_that_a_label_or_a_name_escapes() {
    let everything = json!({"limits": {"maxGpusPerCluster": 2}});
    let for_label = json!({"match": {"objectSelector": {"matchLabels": {"tier": "dev"}}},
        "limits": {"maxGpusPerCluster": 2}});
    let review = |spec: &Value| {
        let mut review = create(&policy("new", spec));
        review["request"]["kind"] =
            json!({"group": "rayfit.dev", "version": "v1alpha1", "kind": "RayPolicy"});
        review
    };
    let alone = server(&[]);
    let told = warned(&alone, &review(&for_label)).await;
    assert!(told.contains("avoid maxGpusPerCluster"), "{told}");
    assert_eq!(warned(&alone, &review(&everything)).await, "null");
    let beside = server(&[everything]);
    assert_eq!(warned(&beside, &review(&for_label)).await, "null");
}

/// The longer what pods ask of nodes is, and the more nodes there are, the longer a check takes in which others wait.
#[test]
fn what_pods_ask_of_nodes_is_compared_with_them_within_bounds() {
    let node = |number: usize| {
        json!({"metadata": {"name": format!("n{number}")},
            "status": {"allocatable": {"cpu": "2", "memory": "8Gi"}}})
    };
    let nodes: Vec<Value> = (0..1000).map(node).collect();
    let facts: Facts = serde_json::from_value(json!({ "nodes": nodes })).unwrap();
    let found = |further: usize| {
        let mut object = cluster();
        object["spec"]["enableInTreeAutoscaling"] = true.into();
        let name = object["spec"]["workerGroupSpecs"][0]["groupName"].clone();
        let limits = json!({"max-cpu": "64", "max-memory": "8Gi", "resize-timeout": 300});
        let groups = json!({"groups": {name.as_str().unwrap(): limits}});
        object["metadata"]["annotations"] = json!({"ray.io/ippr": groups.to_string()});
        // A term that says nothing holds nowhere, so these change nothing but the work.
        let mut terms = vec![json!({}); further];
        terms.push(json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}));
        object["spec"]["workerGroupSpecs"][0]["template"]["spec"]["affinity"] = json!({
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms}}});
        let object = RayObject::parse(&object).unwrap();
        let verdict = judge(&object, None, None, &facts, &Settings::default());
        let rules: Vec<u16> = verdict.findings().map(|(_, found)| found.rule.0).collect();
        rules.contains(&115)
    };
    assert!(found(10));
    assert!(!found(1000));
}
