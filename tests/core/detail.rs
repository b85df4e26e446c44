//! Reading objects into slices, and only as far as they are looked at, changes no verdict and no patch.

use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use rayfit::admission::review::Review;
use rayfit::admission::{AdmissionLimits, Webhook, decide, response, tree};
use rayfit_core::facts::Facts;
use rayfit_core::json::Json;
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::{defaults, judge};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tree::{Detail, TreeArena};

fn review(object: &Value, old: Option<&Value>) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "ray.io", "version": "v1", "kind": object["kind"]},
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "alice"},
            "object": object,
            "oldObject": old,
        },
    })
    .to_string()
}

/// Memory up to the limit of the webhooks.
fn arena() -> TreeArena {
    TreeArena::of(AdmissionLimits::default().trees)
}

/// What the webhook answers.
fn answer(webhook: Webhook, body: &str, policy: &EffectivePolicy) -> String {
    let review = Review::parse(body.as_bytes()).unwrap();
    let decision =
        decide::decide(webhook, &review, policy, Timestamp::UNIX_EPOCH, &arena()).unwrap();
    String::from_utf8(response::render(&review, &decision).unwrap()).unwrap()
}

/// What it would answer if it read everything, and into values.
fn whole_answer(webhook: Webhook, body: &str, policy: &EffectivePolicy) -> String {
    let review = Review::parse(body.as_bytes()).unwrap();
    let kind = Kind::from_name(&review.kind.kind).unwrap();
    let read = |raw: &RawValue| serde_json::from_str::<Map<String, Value>>(raw.get()).unwrap();
    let object = read(review.object.unwrap());
    let old = review.old_object.map(read);
    let object = RayObject::of_kind(kind, &object);
    let old = old.as_ref().map(|old| RayObject::of_kind(kind, old));
    let EffectivePolicy {
        facts, settings, ..
    } = policy;
    let decision = match webhook {
        Webhook::Validate => decide::ReviewDecision::Judged(judge::judge(
            &object,
            old.as_ref(),
            Some("alice"),
            facts,
            settings,
        )),
        Webhook::Mutate => {
            decide::ReviewDecision::Defaulted(defaults::patch(&object, old.as_ref(), settings))
        }
    };
    String::from_utf8(response::render(&review, &decision).unwrap()).unwrap()
}

fn check(object: &Value, old: Option<&Value>, facts: Facts) {
    let body = review(object, old);
    let mut policy = EffectivePolicy {
        facts,
        ..EffectivePolicy::default()
    };
    policy.settings.defaults = serde_json::from_value(json!({
        "headTakesNoWork": true, "rayfitContainer": {"imagePullSecret": "mirror"}
    }))
    .unwrap();
    for webhook in [Webhook::Validate, Webhook::Mutate] {
        assert_eq!(
            answer(webhook, &body, &policy),
            whole_answer(webhook, &body, &policy),
            "{webhook:?} {body}"
        );
    }
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            found.extend(yaml_files(&path));
        } else if name
            .split_once('.')
            .is_some_and(|(_, ending)| ending == "yaml")
        {
            found.push(path);
        }
    }
    found
}

fn read(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_saphyr::from_str(&text).unwrap())
}

#[test]
fn every_fixture_of_a_rule_or_default_is_answered_alike() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files = yaml_files(&fixtures.join("rules"));
    files.extend(yaml_files(&fixtures.join("defaults")));
    assert!(files.len() > 100, "{}", files.len());
    for file in files {
        let object = read(&file).unwrap();
        if RayObject::parse(&object).is_none() {
            continue;
        }
        let old = read(&file.with_extension("old.yaml"));
        let facts = read(&file.with_extension("facts.yaml"))
            .map(|facts| serde_json::from_value(facts).unwrap())
            .unwrap_or_default();
        check(&object, old.as_ref(), facts);
    }
}

/// Keys that rules know, beside keys that stand for what nobody reads.
const KEYS: &[&str] = &[
    "affinity",
    "annotations",
    "args",
    "command",
    "containers",
    "env",
    "envFrom",
    "imagePullSecrets",
    "initContainers",
    "limits",
    "livenessProbe",
    "managedFields",
    "name",
    "nodeSelector",
    "overhead",
    "requests",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "securityContext",
    "spec",
    "status",
    "template",
    "tolerations",
    "value",
    "volumeMounts",
    "volumes",
];

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        Just(json!(0.5)),
        prop::sample::select(vec!["1", "Always", "Recreate", "1Gi", "a\"b\\\u{e9}\n"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 4, |inner| {
        let key = prop::sample::select(KEYS).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// An object of a kind in which everything that is read in part is of any shape.
fn object() -> impl Strategy<Value = Value> {
    let template = || (anything(), anything(), anything());
    (0..4_usize, template(), template(), anything()).prop_map(|(kind, head, worker, rest)| {
        let kind = Kind::ALL[kind];
        let group = |(container, pod, template): (Value, Value, Value)| {
            let mut pod = json!({"volumes": pod, "containers": [container, pod]});
            pod["affinity"] = template.clone();
            json!({"template": {"metadata": template, "spec": pod}, "groupName": "small",
                       "minReplicas": 0, "maxReplicas": 3, "rayStartParams": {"num-cpus": "1"}})
        };
        let mut spec = json!({
            "enableInTreeAutoscaling": true,
            "headGroupSpec": group(head),
            "workerGroupSpecs": [group(worker)],
        });
        for key in kind.cluster_path().iter().skip(1).rev() {
            spec = json!({ *key: spec });
        }
        let ippr = r#"{"groups":{"small":{"max-cpu":"8","max-memory":"1Gi"}}}"#;
        json!({
            "apiVersion": "ray.io/v1",
            "kind": kind.name(),
            "metadata": {"name": "a", "managedFields": rest,
                         "annotations": {"ray.io/ippr": ippr}},
            "spec": spec,
            "status": rest,
        })
    })
}

proptest! {
    #[test]
    fn objects_of_any_shape_are_answered_alike(new in object(), old in object(), update: bool) {
        // Two kinds at once are no update.
        let update = update && new["kind"] == old["kind"];
        check(&new, update.then_some(&old), Facts::default());
    }

    #[test]
    fn what_is_not_left_out_is_as_it_was(value in anything()) {
        let value = json!({"spec": {"x": value}});
        let raw = RawValue::from_string(value.to_string()).unwrap();
        let arena = arena();
        for detail in [Detail::Whole, Detail::Judged] {
            let read = tree::read(&raw, "object", detail, &arena).unwrap();
            prop_assert_eq!(read, Json::from(&value));
            prop_assert_eq!(Json::from(&value), read);
            prop_assert_eq!(&read.to_value(), &value);
        }
    }

    /// Whether fields are looked through or searched, and in whatever order they come.
    #[test]
    fn every_field_is_found(keys in prop::collection::vec("[a-d]{1,3}", 0..60)) {
        let written: Vec<String> = keys.iter().enumerate().map(|(at, key)| format!("{key:?}:{at}")).collect();
        let text = format!("{{{}}}", written.join(","));
        let value: Value = serde_json::from_str(&text).unwrap();
        let raw = RawValue::from_string(text).unwrap();
        let arena = arena();
        let fields = tree::read_fields(&raw, "object", Detail::Whole, &arena).unwrap();
        for key in keys.iter().map(String::as_str).chain(["", "abcd", "e"]) {
            prop_assert_eq!(fields.get(key), value.get(key).map(Json::from), "{}", key);
        }
    }
}

/// Also of what other rules do not read.
#[test]
fn a_change_of_a_template_replaces_the_pods() {
    let cluster = |volumes: &str| {
        let volumes: Value = serde_json::from_str(volumes).unwrap();
        json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a"}, "spec": {
            "upgradeStrategy": {"type": "Recreate"},
            "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head"}], "volumes": volumes}}}}})
    };
    let answer = |new: &str, old: &str| {
        let body = review(&cluster(new), Some(&cluster(old)));
        answer(Webhook::Validate, &body, &EffectivePolicy::default())
    };
    let place = "RF306 spec.headGroupSpec.template.spec.volumes";
    let named = r#"[{"name":"a"}]"#;
    assert!(answer(named, r#"[{"name":"b"}]"#).contains(place));
    assert!(answer(named, "[]").contains(place));
    assert!(!answer("null", "[]").contains("RF306"));
    // Go's clients write a null into the metadata of each template, which KubeRay takes for absent.
    let plain = cluster("[]");
    let mut stamped = plain.clone();
    stamped["spec"]["headGroupSpec"]["template"]["metadata"] = json!({"creationTimestamp": null});
    let mut empty = plain;
    empty["spec"]["headGroupSpec"]["template"]["metadata"] = json!({});
    let body = review(&stamped, Some(&empty));
    let answer = self::answer(Webhook::Validate, &body, &EffectivePolicy::default());
    assert!(!answer.contains("RF306"), "{answer}");
}
