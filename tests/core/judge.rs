//! What judging promises whatever the rules find, tried on every violating fixture of every rule.

use std::path::{Path, PathBuf};

use rayfit::facts::Facts;
use rayfit::judge::{Verdict, judge};
use rayfit::policy::settings::KUBERAY_OPERATOR;
use rayfit::policy::{Mode, Settings};
use rayfit::ray::{Kind, RayObject};
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
        assert_eq!(verdict, Verdict::default(), "{}", case.path.display());
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
