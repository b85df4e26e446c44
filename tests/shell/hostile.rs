//! Hostile bodies: always an answer in words, never a crash.

use axum::http::StatusCode;
use proptest::prelude::*;
use serde_json::json;

use crate::review_support::{Server, bad_cluster, cluster, create, post, server, update};

async fn status_of(server: &Server, body: impl Into<axum::body::Body>) -> StatusCode {
    let (status, text) = server.send(post("/validate", body)).await;
    assert!(!text.is_empty());
    status
}

#[tokio::test(start_paused = true)]
async fn a_review_cut_anywhere_is_a_bad_request() {
    let server = server();
    let review = create(&cluster()).to_string();
    for end in 0..review.len() {
        let status = status_of(&server, review.as_bytes()[..end].to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "cut after {end}");
    }
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_a_bad_request() {
    let server = server();
    for depth in [200, 100_000, 3_000_000] {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        for field in ["object", "oldObject", "userInfo", "options", "uid"] {
            let mut review = update(&cluster(), &bad_cluster());
            review["request"][field] = "@".into();
            let body = review.to_string().replace("\"@\"", &deep);
            let status = status_of(&server, body).await;
            // What is not looked at may be as deep as it likes.
            let expected = if field == "options" {
                StatusCode::OK
            } else {
                StatusCode::BAD_REQUEST
            };
            assert_eq!(status, expected, "{field} {depth} deep");
        }
        assert_eq!(status_of(&server, deep).await, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test(start_paused = true)]
async fn a_spec_nested_too_deeply_is_a_bad_request() {
    let server = server();
    let mut object = cluster();
    object["spec"]["headGroupSpec"] = "@".into();
    let deep = "{\"a\":".repeat(500) + "1" + &"}".repeat(500);
    let body = create(&object).to_string().replace("\"@\"", &deep);
    assert_eq!(status_of(&server, body).await, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn wrong_envelopes_are_bad_requests() {
    let server = server();
    let change = |change: fn(&mut serde_json::Value)| {
        let mut review = create(&cluster());
        change(&mut review);
        review.to_string().into_bytes()
    };
    let mut not_utf8 = change(|_| {});
    let place = not_utf8
        .windows(4)
        .position(|word| word == b"demo")
        .unwrap();
    not_utf8[place] = 0xff;
    for (what, body) in [
        ("nothing", Vec::new()),
        ("another type", b"42".to_vec()),
        ("not UTF-8", not_utf8),
        (
            "no uid",
            change(|review| drop(review["request"].as_object_mut().unwrap().remove("uid"))),
        ),
        (
            "an empty uid",
            change(|review| review["request"]["uid"] = "".into()),
        ),
        (
            "a uid that is no text",
            change(|review| review["request"]["uid"] = 7.into()),
        ),
        (
            "no request",
            change(|review| review["request"] = json!(null)),
        ),
        (
            "another version",
            change(|review| review["apiVersion"] = "admission.k8s.io/v1beta1".into()),
        ),
        (
            "another kind",
            change(|review| review["kind"] = "Pod".into()),
        ),
        (
            "no object",
            change(|review| review["request"]["object"] = json!(null)),
        ),
        (
            "a list for an object",
            change(|review| review["request"]["object"] = json!([])),
        ),
        (
            "no old object",
            change(|review| review["request"]["operation"] = "UPDATE".into()),
        ),
    ] {
        assert_eq!(
            status_of(&server, body).await,
            StatusCode::BAD_REQUEST,
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_groups_is_answered() {
    let server = server();
    let mut object = bad_cluster();
    let group = object["spec"]["workerGroupSpecs"][0].clone();
    object["spec"]["workerGroupSpecs"] = vec![group; 3000].into();
    for path in ["/mutate", "/validate"] {
        let (status, text) = server
            .send(post(
                &format!("{path}?timeout=30s"),
                create(&object).to_string(),
            ))
            .await;
        assert_eq!(status, StatusCode::OK);
        assert!(text.len() < 4 << 20, "{} bytes", text.len());
    }
}

fn answer_to(body: Vec<u8>) -> StatusCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(status_of(&server(), body))
}

/// A small JSON tree with the keys that matter in it.
fn tree() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "[a-z0-9.{}\":]{0,12}".prop_map(Into::into),
    ];
    let key = prop::sample::select(vec![
        "metadata",
        "spec",
        "annotations",
        "ray.io/ippr",
        "rayfit.dev/reconcile",
        "labels",
        "name",
        "headGroupSpec",
        "workerGroupSpecs",
        "groupName",
        "rayStartParams",
        "num-cpus",
        "template",
        "containers",
        "resources",
        "limits",
        "requests",
        "cpu",
        "memory",
        "autoscalerOptions",
        "enableInTreeAutoscaling",
        "minReplicas",
        "maxReplicas",
        "replicas",
        "env",
        "ownerReferences",
        "deletionTimestamp",
        "rayVersion",
        "image",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(key.clone(), inner, 0..6).prop_map(|map| {
                map.into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_crash_it(body: Vec<u8>) {
        prop_assert_eq!(answer_to(body), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn no_damage_to_a_review_crashes_it(place: prop::sample::Index, byte: u8) {
        let mut body = update(&bad_cluster(), &cluster()).to_string().into_bytes();
        let place = place.index(body.len());
        body[place] = byte;
        let status = answer_to(body);
        prop_assert!([StatusCode::OK, StatusCode::BAD_REQUEST].contains(&status), "{}", status);
    }

    #[test]
    fn no_object_crashes_it(object in tree(), old in prop::option::of(tree())) {
        let review = match &old {
            None => create(&object),
            Some(old) => update(&object, old),
        };
        let mut review = review;
        review["request"]["kind"]["kind"] = "RayCluster".into();
        let status = answer_to(review.to_string().into_bytes());
        prop_assert!([StatusCode::OK, StatusCode::BAD_REQUEST].contains(&status), "{}", status);
    }
}
