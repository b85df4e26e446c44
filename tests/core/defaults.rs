//! Every default against its own example, its fixtures, and the promises that hold for all.
//!
//! `tests/fixtures/defaults/<name>.yaml` is an object (with `<name>.old.yaml` beside it an
//! update); what is filled in is a snapshot.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use rayfit_core::defaults::{self, DEFAULTS, DefaultPatch};
use rayfit_core::facts::Facts;
use rayfit_core::judge::judge;
use rayfit_core::policy::{Limit, Policies, Settings};
use rayfit_core::ray::{RayObject, ReconcileMode};
use rayfit_core::raypolicy::compile;
use rayfit_core::rule_page;
use serde_json::{Value, json};

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.defaults.head_takes_no_work = Some(true);
    settings
}

fn draft(object: &Value, old: Option<&Value>, settings: &Settings) -> DefaultPatch {
    let old = old.map(|old| RayObject::parse(old).expect("a Ray object"));
    defaults::patch(
        &RayObject::parse(object).expect("a Ray object"),
        old.as_ref(),
        settings,
    )
}

/// The object as it is stored.
fn stored(object: &Value, old: Option<&Value>, settings: &Settings) -> Value {
    let mut result = object.clone();
    let defaulted = draft(object, old, settings);
    json_patch::patch(&mut result, &defaulted.operations)
        .unwrap_or_else(|e| panic!("{e}: {:?}\n{object:#}", defaulted.operations));
    result
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn ray_cluster(text: &str) -> Value {
    let mut value = yaml(text);
    let root = value.as_object_mut().unwrap();
    root.entry("apiVersion").or_insert("ray.io/v1".into());
    root.entry("kind").or_insert("RayCluster".into());
    value
}

#[test]
fn every_default_turns_its_example_into_what_it_says() {
    for default in DEFAULTS {
        let mut settings = Settings::default();
        settings.defaults.head_takes_no_work = Some(default.id.0 == 8);
        settings.reconcile.written.mode = (default.id.0 == 7).then_some(ReconcileMode::Central);
        let result = stored(
            &ray_cluster(rule_page::manifest(default.page, "Before")),
            None,
            &settings,
        );
        assert_eq!(
            result,
            ray_cluster(rule_page::manifest(default.page, "As stored")),
            "{}",
            default.id
        );
        let applied = draft(
            &ray_cluster(rule_page::manifest(default.page, "Before")),
            None,
            &settings,
        )
        .applied;
        assert!(
            applied.iter().all(|applied| applied.id == default.id),
            "{applied:?}"
        );
    }
}

/// Two policies that contradict each other deny nobody for what nobody has written.
#[test]
fn nothing_is_filled_in_that_another_policy_denies() {
    let mut settings = Settings::default();
    settings.reconcile.written.mode = Some(ReconcileMode::Central);
    settings.allowed_modes = vec![ReconcileMode::Ray];
    let (most, policy) = (30, "cheap".into());
    settings.limits.max_idle_timeout_seconds = Some(Limit { most, policy });
    let cluster = ray_cluster("{metadata: {}, spec: {enableInTreeAutoscaling: true}}");
    let result = stored(&cluster, None, &settings);
    assert_eq!(result["metadata"], json!({}));
    let options = &result["spec"]["autoscalerOptions"];
    assert_eq!(options["idleTimeoutSeconds"], 30);
    let judged = RayObject::parse(&result).unwrap();
    let verdict = judge(&judged, None, None, &Facts::default(), &settings);
    let denied: Vec<u16> = verdict.denied.iter().map(|found| found.rule.0).collect();
    assert!(
        !denied.contains(&402) && !denied.contains(&505),
        "{denied:?}"
    );
    // Who scales a running cluster does not change when its manifest is applied again.
    let mut old = cluster.clone();
    old["metadata"]["annotations"] = json!({"rayfit.dev/reconcile": "central"});
    let again = stored(&cluster, Some(&old), &settings);
    assert_eq!(again["metadata"], old["metadata"]);
    settings.allowed_modes = ReconcileMode::ALL.to_vec();
    let result = stored(&cluster, None, &settings);
    assert_eq!(
        result["metadata"]["annotations"]["rayfit.dev/reconcile"],
        "central"
    );
}

#[test]
fn fixtures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/defaults");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .filter(|path| {
            let name = path.to_str().unwrap();
            !name.ends_with(".old.yaml") && !name.ends_with(".policy.yaml")
        })
        .collect();
    paths.sort();
    assert!(paths.len() >= 14, "fixtures are missing: {}", paths.len());
    let read = |path: &Path| yaml(&std::fs::read_to_string(path).unwrap());
    for path in paths {
        let old = path.with_extension("old.yaml");
        let old = old.exists().then(|| read(&old));
        let policy = path.with_extension("policy.yaml");
        let settings = if policy.exists() {
            under(&read(&policy), &read(&path))
        } else {
            settings()
        };
        let defaulted = draft(&read(&path), old.as_ref(), &settings);
        let mut text = String::new();
        for applied in &defaulted.applied {
            writeln!(text, "{applied}").unwrap();
        }
        for operation in &defaulted.operations.0 {
            writeln!(text, "{}", serde_json::to_string(operation).unwrap()).unwrap();
        }
        stored(&read(&path), old.as_ref(), &settings);
        insta::with_settings!({
            snapshot_path => &folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), text);
        });
    }
}

/// The settings for an object under a RayPolicy.
fn under(policy: &Value, object: &Value) -> Settings {
    let written = compile::read(policy).unwrap_or_else(|fault| panic!("{fault}"));
    let (policy, faults) = compile(&written);
    assert_eq!(faults, []);
    let (base, facts) = (Settings::default(), Facts::default());
    Policies::new(vec![policy.unwrap()])
        .settings_for(
            &base,
            &RayObject::parse(object).unwrap(),
            &facts,
            Timestamp::UNIX_EPOCH,
        )
        .into_owned()
}

/// A container of a group template, with every shape that defaults look at.
fn container() -> impl Strategy<Value = Value> {
    let amounts = || {
        prop::option::of(
            (prop::option::of(1..4_i32), prop::option::of(1..4_i32)).prop_map(|(cpu, memory)| {
                let mut map = serde_json::Map::new();
                map.extend(cpu.map(|cpu| ("cpu".to_owned(), json!(cpu.to_string()))));
                map.extend(
                    memory.map(|memory| ("memory".to_owned(), json!(format!("{memory}Gi")))),
                );
                map.insert("example.com/thing".to_owned(), json!("1.10"));
                Value::Object(map)
            }),
        )
    };
    let policy = prop::option::of(prop::sample::subsequence(vec!["cpu", "memory"], 0..=2));
    (amounts(), amounts(), policy, any::<bool>()).prop_map(|(limits, requests, policy, restart)| {
        let mut resources = serde_json::Map::new();
        resources.extend(limits.map(|limits| ("limits".to_owned(), limits)));
        resources.extend(requests.map(|requests| ("requests".to_owned(), requests)));
        let mut container =
            json!({"name": "ray", "x-unknown": [1.50, null, "ü"], "resources": resources});
        if restart {
            container["env"] =
                json!([{"name": "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "value": "90"}]);
        }
        if let Some(policy) = policy {
            let how = if restart {
                "RestartContainer"
            } else {
                "NotRequired"
            };
            container["resizePolicy"] = policy
                .into_iter()
                .map(|resource| json!({"resourceName": resource, "restartPolicy": how}))
                .collect();
        }
        container
    })
}

fn options() -> impl Strategy<Value = Option<Value>> {
    let key = prop::sample::subsequence(
        vec![
            ("version", json!("v1")),
            ("imagePullPolicy", json!("Always")),
            ("image", json!("mine:1")),
            ("resources", json!({"limits": {"cpu": "1"}})),
            ("idleTimeoutSeconds", json!(600)),
            ("upscalingMode", json!("Conservative")),
            ("x-unknown", json!({"a": null})),
        ],
        0..=7,
    );
    prop::option::of(key.prop_map(|keys| {
        keys.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<Value>()
    }))
}

fn cluster() -> impl Strategy<Value = Value> {
    let listed = prop::sample::subsequence(vec!["headgroup", "a", "b", "gone"], 0..=4);
    let mode = prop::option::of(prop::sample::select(vec![
        "ray", "central", "sidecar", "other",
    ]));
    let autoscaling = prop::option::of(any::<bool>());
    let groups = prop::collection::vec(container(), 3);
    (listed, mode, autoscaling, groups, options(), any::<bool>()).prop_map(
        |(listed, mode, autoscaling, containers, options, v2_field)| {
            let limits = json!({"max-cpu": "8", "max-memory": "32Gi", "resize-timeout": 300});
            let groups: serde_json::Map<_, _> = listed
                .into_iter()
                .map(|name| (name.to_owned(), limits.clone()))
                .collect();
            let mut object = json!({
                "apiVersion": "ray.io/v1", "kind": "RayCluster",
                "metadata": {"name": "x", "annotations": {
                    "ray.io/ippr": json!({"groups": groups}).to_string(),
                }},
                "spec": {
                    "headGroupSpec": {"template": {"spec": {"containers": [containers[0]]}}},
                    "workerGroupSpecs": [
                        {"groupName": "a", "template": {"spec": {"containers": [containers[1]]}}},
                        {"groupName": "b", "template": {"spec": {"containers": [containers[2]]}}},
                    ],
                    "x-unknown": 1e3,
                },
            });
            if let Some(mode) = mode {
                object["metadata"]["annotations"]["rayfit.dev/reconcile"] = json!(mode);
            }
            if let Some(autoscaling) = autoscaling {
                object["spec"]["enableInTreeAutoscaling"] = json!(autoscaling);
            }
            if let Some(options) = options {
                object["spec"]["autoscalerOptions"] = options;
            }
            if v2_field {
                object["spec"]["rayVersion"] = json!("2.60.0");
                let pod = &mut object["spec"]["workerGroupSpecs"][1]["template"]["spec"];
                pod["terminationGracePeriodSeconds"] = json!(300);
                object["spec"]["workerGroupSpecs"][0]["idleTimeoutSeconds"] = json!(30);
            }
            object
        },
    )
}

/// Everything of `before` is in `after`, unchanged and in the same order among its siblings.
fn is_kept(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let kept: Vec<_> = after
                .keys()
                .filter(|key| before.contains_key(*key))
                .collect();
            before.keys().collect::<Vec<_>>() == kept
                && before
                    .iter()
                    .all(|(key, value)| is_kept(value, &after[key]))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() <= after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|(before, after)| is_kept(before, after))
        }
        _ => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_patch_applies_keeps_everything_and_is_empty_the_second_time(object in cluster()) {
        let first = stored(&object, None, &settings());
        prop_assert!(is_kept(&object, &first), "{object:#}\n{first:#}");
        let second = draft(&first, None, &settings());
        prop_assert!(second.operations.is_empty(), "{:?}", second.operations);
        let update = draft(&first, Some(&first), &settings());
        prop_assert!(update.operations.is_empty(), "{:?}", update.operations);
    }

    /// Server-side apply by one manager drops what was defaulted: applying the same again must
    /// store the same, or KubeRay would see a changed spec.
    #[test]
    fn applying_the_same_object_again_stores_the_same(object in cluster()) {
        let first = stored(&object, None, &settings());
        let mut again = stored(&object, Some(&first), &settings());
        prop_assert!(is_kept(&object, &again));
        again.sort_all_objects();
        let mut first = first;
        first.sort_all_objects();
        prop_assert_eq!(again, first);
    }

    /// An object from before Rayfit, updated for some other reason, is left as it is.
    #[test]
    fn an_object_from_before_is_left_alone(object in cluster()) {
        let mut update = object.clone();
        update["spec"]["workerGroupSpecs"][0]["replicas"] = json!(7);
        let defaulted = draft(&update, Some(&object), &settings());
        prop_assert!(defaulted.operations.is_empty(), "{:?}", defaulted.applied);
    }

    /// Whatever the old object was, the patch applies and a second run finds nothing to do.
    #[test]
    fn any_update_settles(old in cluster(), new in cluster()) {
        let stored_once = stored(&new, Some(&old), &settings());
        prop_assert!(is_kept(&new, &stored_once));
        let again = draft(&stored_once, Some(&old), &settings());
        prop_assert!(again.operations.is_empty(), "{:?}", again.applied);
    }

    #[test]
    fn a_deleting_object_is_left_alone(mut object in cluster()) {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        prop_assert!(draft(&object, None, &settings()).operations.is_empty());
    }
}
