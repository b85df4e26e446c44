//! What judging promises whatever the rules find, tried on every violating fixture of every rule.

use std::path::{Path, PathBuf};

use rayfit_core::facts::Facts;
use rayfit_core::judge::{Verdict, judge};
use rayfit_core::policy::settings::KUBERAY_OPERATOR;
use rayfit_core::policy::{Limit, Limits, Mode, Settings};
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::{Kind, RayObject, RayVersion};
use rayfit_core::rule_id::RuleId;
use serde_json::{Value, json};

struct Case {
    path: PathBuf,
    object: Value,
    facts: Facts,
}

/// The fixtures that are judged on their own and denied.
fn denied_cases() -> Vec<Case> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rules");
    let cases: Vec<Case> = std::fs::read_dir(folders)
        .unwrap()
        .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("bad-") && name.split_once('.').unwrap().1 == "yaml"
        })
        .map(|path| {
            let facts = path.with_extension("facts.yaml");
            let facts = facts
                .exists()
                .then(|| serde_json::from_value(read(&facts)).unwrap());
            Case {
                object: read(&path),
                facts: facts.unwrap_or_default(),
                path,
            }
        })
        // Requests to resize a pod (RF401) are no Ray objects.
        .filter(|case| RayObject::parse(&case.object).is_some())
        .filter(|case| !case.judge(&case.object, None, None).is_allowed())
        .collect();
    assert!(cases.len() > 80, "only {} denied fixtures", cases.len());
    cases
}

fn read(path: &Path) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

impl Case {
    fn judge(&self, object: &Value, old: Option<&Value>, user: Option<&str>) -> Verdict {
        let object = RayObject::parse(object).unwrap();
        let old = old.map(|old| RayObject::parse(old).unwrap());
        judge(
            &object,
            old.as_ref(),
            user,
            &self.facts,
            &Settings::default(),
        )
    }

    fn worker_groups<'v>(&self, object: &'v mut Value) -> Option<&'v mut Vec<Value>> {
        let kind = Kind::from_name(self.object["kind"].as_str().unwrap()).unwrap();
        let spec = kind
            .cluster_path()
            .iter()
            .fold(object, |value, key| &mut value[key]);
        spec.get_mut("workerGroupSpecs")?.as_array_mut()
    }
}

fn with_another_label(object: &Value) -> Value {
    let mut changed = object.clone();
    changed["metadata"]["labels"]["team"] = json!("other");
    changed
}

#[test]
fn what_was_wrong_before_an_update_warns_and_never_denies() {
    for case in denied_cases() {
        let verdict = case.judge(&with_another_label(&case.object), Some(&case.object), None);
        assert!(
            verdict.is_allowed(),
            "{}: {:?}",
            case.path.display(),
            verdict.denied
        );
        assert!(
            !verdict.warned.is_empty(),
            "{}: inherited, but silent",
            case.path.display()
        );
    }
}

#[test]
fn reordering_groups_brings_no_new_finding() {
    for case in denied_cases() {
        let mut reordered = with_another_label(&case.object);
        let Some(groups) = case.worker_groups(&mut reordered) else {
            continue;
        };
        groups.insert(
            0,
            json!({"groupName": "new-first", "replicas": 0, "minReplicas": 0, "maxReplicas": 1,
            "rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray",
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}}),
        );
        groups[1..].reverse();
        // Without names nothing tells groups apart but their order.
        if groups.iter().any(|group| group.get("groupName").is_none()) {
            continue;
        }
        let verdict = case.judge(&reordered, Some(&case.object), None);
        assert!(
            verdict.is_allowed(),
            "{}: {:?}",
            case.path.display(),
            verdict.denied
        );
    }
}

#[test]
fn further_containers_before_others_bring_no_new_finding() {
    let further = || {
        json!({"name": "further",
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}})
    };
    let mut moved = 0;
    for case in denied_cases() {
        let mut changed = case.object.clone();
        let Some(groups) = case.worker_groups(&mut changed) else {
            continue;
        };
        for group in groups {
            // The ray container stays the first one.
            for (list, at) in [("containers", 1), ("initContainers", 0)] {
                let list = group.pointer_mut(&format!("/template/spec/{list}"));
                let list = list.and_then(Value::as_array_mut);
                if let Some(list) = list.filter(|list| !list.is_empty()) {
                    moved += usize::from(list.len() > at);
                    list.insert(at, further());
                }
            }
        }
        let verdict = case.judge(&changed, Some(&case.object), None);
        assert!(
            verdict.is_allowed(),
            "{}: {:?}",
            case.path.display(),
            verdict.denied
        );
    }
    assert!(moved > 1, "only {moved} containers have moved");
}

/// An object of the same kind in which no rule finds anything.
fn mended(case: &Case) -> Value {
    json!({"apiVersion": "ray.io/v1", "kind": case.object["kind"],
        "metadata": {"name": "mended"}, "spec": {}})
}

#[test]
fn a_fault_that_was_mended_and_comes_back_is_denied() {
    for case in denied_cases() {
        let mended = mended(&case);
        assert!(
            !case.judge(&case.object, Some(&mended), None).is_allowed(),
            "{}",
            case.path.display()
        );
    }
}

#[test]
fn an_object_that_is_being_deleted_can_always_end() {
    for case in denied_cases() {
        for mut old in [case.object.clone(), mended(&case)] {
            old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            let verdict = case.judge(&case.object, Some(&old), None);
            assert_eq!(verdict, Verdict::default(), "{}", case.path.display());
        }
        let mut old = case.object.clone();
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        old["metadata"]["finalizers"] = json!(["a", "b"]);
        let mut less = old.clone();
        less["metadata"]["finalizers"] = json!(["b"]);
        let verdict = case.judge(&less, Some(&old), None);
        assert!(verdict.is_allowed(), "{}", case.path.display());
    }
}

#[test]
fn what_is_held_by_a_finalizer_is_judged_like_any_other() {
    for case in denied_cases() {
        let mut old = mended(&case);
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut held = case.object.clone();
        held["metadata"]["finalizers"] = json!(["b"]);
        let verdict = case.judge(&held, Some(&old), Some("mallory"));
        assert!(!verdict.is_allowed(), "{}", case.path.display());
        let verdict = case.judge(&held, Some(&old), Some(KUBERAY_OPERATOR));
        assert!(verdict.is_allowed(), "{}", case.path.display());
        assert!(!verdict.audited.is_empty(), "{}", case.path.display());
    }
}

#[test]
fn what_the_operator_makes_from_a_judged_parent_is_only_audited() {
    for case in denied_cases() {
        let mut owned = case.object.clone();
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "ray.io/v1", "kind": "RayService", "name": "p", "controller": true}]);
        let manifest = case.judge(&owned, None, None);
        assert!(
            !manifest.is_allowed(),
            "{}: nobody has stored it",
            case.path.display()
        );
        owned["metadata"]["uid"] = json!("u");
        for user in [None, Some(KUBERAY_OPERATOR)] {
            let verdict = case.judge(&owned, None, user);
            assert!(verdict.denied.is_empty() && verdict.warned.is_empty());
            assert!(verdict.findings().all(|(mode, _)| mode == Mode::Audit));
            assert!(!verdict.audited.is_empty(), "{}", case.path.display());
        }
        let forged = case.judge(&owned, None, Some("mallory"));
        assert!(
            !forged.is_allowed(),
            "{}: an owner reference is no pass",
            case.path.display()
        );
    }
}

/// A cluster that a group of so many workers of so many CPUs makes too large in every way.
fn large(workers: i64, cpu: i64, idle_s: i64) -> Value {
    let template = |cpu: i64| {
        json!({"spec": {"containers": [{"name": "ray", "resources": {
            "limits": {"cpu": cpu, "memory": "1Gi", "nvidia.com/gpu": 1}}}]}})
    };
    json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "ray", "namespace": "a"},
        "spec": {"enableInTreeAutoscaling": true,
            "autoscalerOptions": {"idleTimeoutSeconds": idle_s},
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template(1)},
            "workerGroupSpecs": [{"groupName": "a", "replicas": workers + 5, "minReplicas": 0,
                "maxReplicas": workers, "rayStartParams": {}, "template": template(cpu)}]}})
}

/// Limits that such clusters exceed, and a rule about replicas that an admin made stricter.
fn limited() -> Settings {
    fn limit<T>(most: T) -> Limit<T> {
        let policy = "team".into();
        Limit { most, policy }
    }
    let mut settings = Settings {
        limits: Limits {
            max_workers_per_cluster: Some(limit(2)),
            max_workers_per_group: Some(limit(2)),
            max_cpu_per_pod: Some(limit(Quantity::from_units(2))),
            max_gpus_per_cluster: Some(limit(2)),
            max_idle_timeout_seconds: Some(limit(60)),
            max_cpu_per_cluster: Some(limit(Quantity::from_units(4))),
            ..Limits::default()
        },
        ..Settings::default()
    };
    settings.modes.set(RuleId(201), Mode::Enforce);
    settings
}

fn denied(object: &Value, old: &Value) -> Vec<u16> {
    let [object, old] = [object, old].map(|object| RayObject::parse(object).unwrap());
    let verdict = judge(&object, Some(&old), None, &Facts::default(), &limited());
    verdict
        .denied
        .iter()
        .map(|finding| finding.rule.0)
        .collect()
}

#[test]
fn what_becomes_less_but_not_little_enough_warns_and_never_denies() {
    let stored = large(100, 16, 900);
    let all = [201, 501, 502, 503, 504, 505, 506];
    let created = RayObject::parse(&stored).unwrap();
    let created = judge(&created, None, None, &Facts::default(), &limited());
    let found: Vec<u16> = created
        .denied
        .iter()
        .map(|finding| finding.rule.0)
        .collect();
    assert_eq!(found, all);
    assert_eq!(denied(&large(50, 8, 600), &stored), [0; 0]);
    // A scaler that writes one worker less.
    let mut fewer = stored.clone();
    fewer["spec"]["workerGroupSpecs"][0]["replicas"] = json!(104);
    assert_eq!(denied(&fewer, &stored), [0; 0]);
    fewer["spec"]["workerGroupSpecs"][0]["replicas"] = json!(106);
    assert_eq!(denied(&fewer, &stored), [201]);
    assert_eq!(denied(&large(101, 16, 900), &stored), [501, 502, 504, 506]);
    assert_eq!(denied(&large(100, 17, 900), &stored), [503, 506]);
    assert_eq!(denied(&large(100, 16, 901), &stored), [505]);
}

/// KubeRay 1.7 refuses pods that may restart under v2, and later versions take them from Ray 2.56 on.
#[test]
fn a_restart_policy_is_judged_by_the_version_of_kuberay() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rules/RF208");
    let object = read(&fixtures.join("bad-worker.yaml"));
    let object = RayObject::parse(&object).unwrap();
    let mut settings = Settings::default();
    let denied = |settings: &Settings| {
        let verdict = judge(&object, None, None, &Facts::default(), settings);
        verdict.denied.iter().any(|found| found.rule == RuleId(208))
    };
    assert!(denied(&settings));
    settings.kuberay = RayVersion::new(1, 8, 0);
    assert!(!denied(&settings));
}
