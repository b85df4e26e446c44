//! Reviews through the router, without a network. Time stands still while a review is checked, so that none is too late
//! on a slow machine.

use axum::http::StatusCode;
use base64::Engine as _;
use rayfit::admission::AdmissionLimits;
use serde_json::{Value, json};

use crate::review_support::{
    SECRET, bad_cluster, cluster, create, post, server, update, with, worse_cluster,
};

fn allowed() -> Value {
    json!({"uid": "0c6d5a3e-1", "allowed": true})
}

#[tokio::test(start_paused = true)]
async fn a_denial_says_everything_at_once() {
    let server = server();
    let response = server.ask("/validate", &create(&worse_cluster())).await;
    let findings = [
        (
            "RF105",
            "rayStartParams.num-cpus",
            "\"1\" fixes the size of a group that is to grow in place",
            "Ray refuses the whole annotation because of it and stops autoscaling the cluster. \
             Remove num-cpus; Ray takes the size from the ray container's limits. Or remove group \
             \"small\" from the ray.io/ippr annotation.",
        ),
        (
            "RF201",
            "minReplicas",
            "5 is above maxReplicas, which is 3",
            "KubeRay stops reconciling the whole cluster because of it, and Ray stops scaling it. \
             Lower minReplicas to 3 or raise maxReplicas to 5.",
        ),
    ];
    let lines = findings.map(|(rule, field, problem, advice)| {
        format!("\n- {rule} spec.workerGroupSpecs[name=small].{field}: {problem}. {advice}")
    });
    let causes = findings.map(|(rule, field, problem, advice)| {
        json!({
            "reason": "FieldValueInvalid",
            "field": format!("spec.workerGroupSpecs[0].{field}"),
            "message": format!("{problem}. {advice} (group small; rayfit explain {rule})"),
        })
    });
    let expected = json!({
        "uid": "0c6d5a3e-1",
        "allowed": false,
        "status": {
            "code": 422,
            "reason": "Invalid",
            "message": format!(
                "2 problems:{}\n(rayfit explain RF105 explains more)",
                lines.concat()
            ),
            "details": {
                "name": "demo", "group": "ray.io", "kind": "RayCluster",
                "causes": causes,
            },
        },
        "auditAnnotations": {"denied": "RF105,RF201", "warned": "RF103", "audited": "RF119"},
        "warnings": [
            "RF103 metadata.annotations[\"ray.io/ippr\"].groups.gone: names a group that this cluster \
             does not have: \"gone\"",
            "RF103 fix: Name one of the groups (\"headgroup\", \"small\"), or remove the entry."
        ],
    });
    assert_eq!(response, expected);
    assert_eq!(
        server.metric("rayfit_findings_total{rule=\"RF201\",mode=\"enforce\"}"),
        Some("1".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn warnings_come_with_an_allowance() {
    let mut object = cluster();
    object["spec"]["enableInTreeAutoscaling"] = true.into();
    object["metadata"]["annotations"]["ray.io/ippr"] =
        r#"{"groups":{"gone":{"max-cpu":4,"max-memory":"8Gi","resize-timeout":60}}}"#.into();
    let response = server().ask("/validate", &create(&object)).await;
    assert_eq!(response["allowed"], true);
    assert!(response["status"].is_null());
    // Problem and fix: together they are longer than what Kubernetes shows of a warning.
    assert_eq!(response["warnings"].as_array().unwrap().len(), 2);
    assert_eq!(response["auditAnnotations"], json!({"warned": "RF103"}));
}

#[tokio::test(start_paused = true)]
async fn the_real_judge_denies_a_bad_cluster_and_admits_it_if_it_was_so_before() {
    let server = server();
    let bad = bad_cluster();
    let response = server.ask("/validate", &create(&bad)).await;
    assert_eq!(response["allowed"], false, "{response}");
    assert!(response.to_string().contains("RF105"), "{response}");
    assert!(!response.to_string().contains(SECRET));
    let mut scaled = bad.clone();
    scaled["spec"]["workerGroupSpecs"][0]["replicas"] = 2.into();
    let response = server.ask("/validate", &update(&scaled, &bad)).await;
    assert_eq!(response["allowed"], true, "{response}");
    assert!(
        response["warnings"].to_string().contains("RF105"),
        "{response}"
    );
}

#[tokio::test(start_paused = true)]
async fn defaults_come_as_a_patch_that_applies_and_is_empty_the_second_time() {
    let server = server();
    let mut object = cluster();
    object["spec"]["enableInTreeAutoscaling"] = true.into();
    let response = server.ask("/mutate", &create(&object)).await;
    assert_eq!(response["patchType"], "JSONPatch", "{response}");
    assert!(response["auditAnnotations"]["defaulted"].is_string());
    let patch = base64::engine::general_purpose::STANDARD
        .decode(response["patch"].as_str().unwrap())
        .unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    json_patch::patch(&mut object, &patch).unwrap();
    assert_eq!(server.ask("/mutate", &create(&object)).await, allowed());
}

#[tokio::test(start_paused = true)]
async fn the_mutating_webhook_never_denies() {
    let server = server();
    let response = server.ask("/mutate", &create(&bad_cluster())).await;
    assert_eq!(response["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn what_is_being_deleted_is_allowed_and_never_patched() {
    let server = server();
    let mut old = bad_cluster();
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut new = old.clone();
    new["spec"]["rayVersion"] = "x".into();
    for path in ["/mutate", "/validate"] {
        assert_eq!(server.ask(path, &update(&new, &old)).await, allowed());
    }
    assert!(
        server
            .metric("rayfit_admission_requests_total{webhook=\"mutate\",kind=\"RayCluster\",operation=\"UPDATE\",outcome=\"deleting\"}")
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_spec_is_not_judged() {
    let server = server();
    let old = bad_cluster();
    let mut new = old.clone();
    new["status"] = json!({"state": "ready"});
    new["metadata"]["resourceVersion"] = "2".into();
    for path in ["/mutate", "/validate"] {
        assert_eq!(server.ask(path, &update(&new, &old)).await, allowed());
    }
    new["metadata"]["annotations"]["rayfit.dev/reconcile"] = "x".into();
    let response = server.ask("/validate", &update(&new, &old)).await;
    assert_eq!(response["allowed"], false);
}

/// API servers write equal values in equal words. What is written in others is judged, and what was there before
/// denies nothing.
#[tokio::test(start_paused = true)]
async fn the_same_spec_in_other_words_is_allowed() {
    let server = server();
    let old = bad_cluster();
    let mut new = old.clone();
    let spec = new["spec"].as_object().unwrap();
    new["spec"] = spec
        .iter()
        .rev()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    assert_ne!(new["spec"].to_string(), old["spec"].to_string());
    let review = update(&new, &old);
    assert_eq!(server.ask("/validate", &review).await["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_is_allowed() {
    let server = server();
    let change = |pointer: &str, value: &str| {
        let mut review = create(&bad_cluster());
        *review.pointer_mut(pointer).unwrap() = value.into();
        review
    };
    let mut status = create(&bad_cluster());
    status["request"]["subResource"] = "status".into();
    let mut delete = change("/request/operation", "DELETE");
    delete["request"]["object"] = Value::Null;
    for review in [
        change("/request/kind/group", "apps"),
        change("/request/kind/kind", "RayUnknown"),
        change("/request/operation", "CONNECT"),
        delete,
        status,
    ] {
        for path in ["/mutate", "/validate"] {
            assert_eq!(server.ask(path, &review).await, allowed(), "{review}");
        }
    }
    assert_eq!(
        server.metric("rayfit_admission_requests_total{webhook=\"validate\",kind=\"other\",operation=\"CREATE\",outcome=\"not_judged\"}"),
        Some("2".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_to_be_generated_is_shown_by_its_prefix() {
    let mut object = bad_cluster();
    object["metadata"].as_object_mut().unwrap().remove("name");
    object["metadata"]["generateName"] = "job-".into();
    let response = server().ask("/validate", &create(&object)).await;
    assert_eq!(response["status"]["details"]["name"], "job-*");
}

#[tokio::test(start_paused = true)]
async fn the_kind_is_taken_from_the_request() {
    let mut review = create(&bad_cluster());
    review["request"]["object"]["apiVersion"] = "ray.io/v1alpha1".into();
    review["request"]["requestKind"] =
        json!({"group": "ray.io", "version": "v1alpha1", "kind": "RayCluster"});
    let response = server().ask("/validate", &review).await;
    assert_eq!(response["allowed"], false);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_answered_alike_and_counts_no_findings() {
    let server = server();
    let real = create(&bad_cluster());
    let mut dry = real.clone();
    dry["request"]["dryRun"] = true.into();
    let answer = server.ask("/validate", &dry).await;
    assert_eq!(server.metric("rayfit_findings_total"), None);
    assert_eq!(answer, server.ask("/validate", &real).await);
    assert!(server.metric("rayfit_findings_total").is_some());
}

#[tokio::test(start_paused = true)]
async fn above_the_bound_the_answer_is_to_come_again() {
    let limits = AdmissionLimits {
        reviews: 0,
        ..AdmissionLimits::default()
    };
    let server = with(limits);
    let (status, body) = server
        .send(post("/validate", create(&cluster()).to_string()))
        .await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(body.contains("busy"), "{body}");
    assert_eq!(
        server.metric("rayfit_admission_overload_total"),
        Some("1".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_together_are_bounded() {
    let limits = AdmissionLimits {
        bodies: 2 << 20,
        ..AdmissionLimits::default()
    };
    let server = with(limits);
    let (status, _) = server.send(post("/validate", vec![b' '; 2 << 20])).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    let (status, _) = server.send(post("/validate", vec![b' '; 1 << 20])).await;
    assert_eq!(
        status,
        StatusCode::BAD_REQUEST,
        "the bound was not given back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_review_that_takes_too_long_gets_a_clear_answer_in_time() {
    let endless = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let body = axum::body::Body::from_stream(endless);
    let (status, body) = server().send(post("/validate?timeout=100ms", body)).await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    assert!(body.contains("timeout"), "{body}");
}

/// A call that fails has the object stored unchecked where the webhooks fail open.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_much_to_check_is_denied_and_not_let_through() {
    let limits = AdmissionLimits {
        trees: 1 << 20,
        ..AdmissionLimits::default()
    };
    let server = with(limits);
    let mut padded = cluster();
    padded["spec"]["headGroupSpec"]["template"]["spec"]["tolerations"] =
        vec![json!({}); 20_000].into();
    for review in [create(&padded), update(&padded, &cluster())] {
        let response = server.ask("/validate", &review).await;
        assert_eq!(response["allowed"], false);
        assert_eq!(response["status"]["code"], 413);
        let message = response["status"]["message"].as_str().unwrap();
        assert!(message.contains("too many values"), "{message}");
    }
    // The other webhook only fills in; and what changes nothing that is checked needs no tree.
    let (status, _) = server
        .send(post("/mutate", create(&padded).to_string()))
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let mut unlocked = padded.clone();
    unlocked["metadata"]["finalizers"] = json!([]);
    let response = server.ask("/validate", &update(&unlocked, &padded)).await;
    assert_eq!(response["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn large_reviews_pass_and_larger_ones_are_refused() {
    let server = server();
    let padded = |megabytes_tenths: usize| {
        let mut object = cluster();
        object["metadata"]["annotations"]["note"] =
            "x".repeat(megabytes_tenths * (1 << 20) / 10).into();
        create(&object).to_string()
    };
    for (tenths, expected) in [(64, StatusCode::OK), (66, StatusCode::PAYLOAD_TOO_LARGE)] {
        let (status, _) = server.send(post("/validate", padded(tenths))).await;
        assert_eq!(status, expected);
        // Without a length announced.
        let (status, _) = server
            .send(post("/validate", unannounced(&padded(tenths))))
            .await;
        assert_eq!(status, expected);
    }
}

/// A body in pieces, of unknown length.
fn unannounced(text: &str) -> axum::body::Body {
    let pieces: Vec<_> = text.as_bytes().chunks(50_000).map(<[u8]>::to_vec).collect();
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    axum::body::Body::from_stream(futures_util::stream::iter(pieces))
}

#[tokio::test(start_paused = true)]
async fn wrong_requests_get_an_answer_that_says_what_is_wrong() {
    let server = server();
    let review = create(&cluster()).to_string();
    let mut wrong = post("/validate", review.clone());
    wrong
        .headers_mut()
        .insert("content-type", "text/yaml".parse().unwrap());
    let (status, body) = server.send(wrong).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(body.contains("application/json"));
    let (status, _) = server.send(post("/elsewhere", review.clone())).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let mut get = post("/validate", "");
    *get.method_mut() = axum::http::Method::GET;
    assert_eq!(server.send(get).await.0, StatusCode::METHOD_NOT_ALLOWED);
}
