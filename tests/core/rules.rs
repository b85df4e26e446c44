//! Every rule against its fixtures, its own examples and the registry's promises.
//!
//! `tests/fixtures/rules/<ID>/bad-*.yaml` must have a finding of that rule, `near-*.yaml` (near
//! misses) none of it. Beside `x.yaml` may lie `x.old.yaml` (the stored object: an update),
//! `x.facts.yaml` (facts of the cluster), `x.policy.yaml` (a RayPolicy) and `x.user.yaml` (who
//! resizes a pod). The findings of each fixture are snapshots.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use rayfit_core::facts::Facts;
use rayfit_core::finding::Finding;
use rayfit_core::object_audit::patch::patch;
use rayfit_core::policy::{Policies, Policy, Settings};
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::raypolicy::compile;
use rayfit_core::rule_id::RuleId;
use rayfit_core::rule_page;
use rayfit_core::rules::guards::resize_by_others;
use rayfit_core::rules::{self, RULES, Rule, Subject};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rules")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn companion(path: &Path, kind: &str) -> Option<Value> {
    let beside = path.with_extension(format!("{kind}.yaml"));
    beside.exists().then(|| read(&beside))
}

fn findings(object: &Value, old: Option<&Value>, facts: &Facts) -> Vec<Finding> {
    findings_under(object, old, facts, &Policies::default())
}

fn findings_under(
    object: &Value,
    old: Option<&Value>,
    facts: &Facts,
    policies: &Policies,
) -> Vec<Finding> {
    let object = RayObject::parse(object).expect("a Ray object");
    let old = old.map(|old| RayObject::parse(old).expect("a Ray object"));
    let base = Settings::default();
    let settings = policies.settings_for(&base, &object, facts, Timestamp::UNIX_EPOCH);
    let subject = Subject {
        object: &object,
        old: old.as_ref(),
        facts,
        settings: &settings,
        user: None,
    };
    rules::run(&subject)
}

/// What the rules about objects as they are written find, which `run` does not ask.
fn written(object: &Value) -> Vec<Finding> {
    rules::schema::find(object.into(), Settings::default().kuberay)
}

fn is_about_written(rule: RuleId) -> bool {
    [601, 602].contains(&rule.0)
}

fn render(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |mut text, finding| {
        let Finding {
            rule,
            mode,
            path,
            problem,
            why,
            fix,
            ..
        } = finding;
        let pointer = path.pointer();
        writeln!(
            text,
            "{rule} {mode} {path}\n  at {pointer}\n  {problem}\n  {why}\n  {fix}"
        )
        .unwrap();
        text
    })
}

/// The objects of a rule's folder whose names begin with `prefix`.
fn cases(rule: &Rule, prefix: &str) -> Vec<PathBuf> {
    let folder = fixtures().join(rule.id.to_string());
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(prefix)
                && name
                    .split_once('.')
                    .is_some_and(|(_, ending)| ending == "yaml")
        })
        .collect();
    cases.sort();
    cases
}

fn findings_of(rule: RuleId, path: &Path) -> Vec<Finding> {
    findings_in(rule, path, &read(path))
}

/// The findings in an object that has what lies beside the path.
fn findings_in(rule: RuleId, path: &Path, object: &Value) -> Vec<Finding> {
    if is_about_written(rule) {
        return written(object);
    }
    let facts = companion(path, "facts").map_or_else(Facts::default, |facts| {
        serde_json::from_value(facts).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    });
    let old = companion(path, "old");
    if let (Some(user), Some(old)) = (companion(path, "user"), &old) {
        return resized(object, old, user.as_str().unwrap());
    }
    let policies = companion(path, "policy").map(|written| policy(&written));
    let policies = Policies::new(policies.into_iter().collect());
    findings_under(object, old.as_ref(), &facts, &policies)
}

fn resized(pod: &Value, old: &Value, user: &str) -> Vec<Finding> {
    let found = resize_by_others::find(pod.into(), old.into(), user);
    found.into_iter().collect()
}

fn policy(written: &Value) -> Policy {
    let written = compile::read(written).unwrap_or_else(|fault| panic!("{fault}"));
    let (policy, faults) = compile(&written);
    assert_eq!(faults, []);
    policy.unwrap()
}

#[test]
fn every_rule_finds_its_bad_fixtures_and_spares_its_near_misses() {
    for rule in RULES {
        let (bad, near) = (cases(rule, "bad-"), cases(rule, "near-"));
        assert!(
            bad.len() >= 2,
            "{} wants at least two bad fixtures",
            rule.id
        );
        assert!(!near.is_empty(), "{} wants at least one near miss", rule.id);
        for path in &bad {
            let found = findings_of(rule.id, path);
            assert!(
                found.iter().any(|finding| finding.rule == rule.id),
                "{} finds nothing in {}; found: {}",
                rule.id,
                path.display(),
                render(&found)
            );
            let name = path.file_stem().unwrap().to_str().unwrap();
            insta::with_settings!({
                snapshot_path => path.parent().unwrap(),
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, {
                insta::assert_snapshot!(name, render(&found));
            });
        }
        for path in &near {
            let found = findings_of(rule.id, path);
            let own: Vec<_> = found.into_iter().filter(|f| f.rule == rule.id).collect();
            assert!(own.is_empty(), "{}: {}", path.display(), render(&own));
        }
    }
}

/// A rule that says how a finding is mended is right: the patch of its bad fixtures, as kubectl would apply it, leaves
/// no such finding.
#[test]
fn what_a_rule_writes_mends_its_finding() {
    let mut mended = BTreeSet::new();
    for rule in RULES {
        for path in cases(rule, "bad-") {
            let object = read(&path);
            for finding in findings_in(rule.id, &path, &object) {
                // That text has quotes of a shell around its JSON, so only its author can write it.
                let is_quoted = finding
                    .path
                    .to_string()
                    .contains(".rayStartParams.resources");
                if finding.rule != rule.id || finding.mend.is_none() || is_quoted {
                    continue;
                }
                let find = |object: &Value| {
                    let mut found = findings_in(rule.id, &path, object);
                    found.retain(|other| other.fault() == finding.fault());
                    found
                };
                let (operations, _) = patch(&object, find);
                let operations = Value::Array(operations);
                let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
                let mut patched = object.clone();
                json_patch::patch(&mut patched, &operations).unwrap();
                let left = find(&patched);
                assert!(left.is_empty(), "{}: {}", path.display(), render(&left));
                mended.insert(rule.id);
            }
        }
    }
    assert!(mended.len() > 15, "{mended:?}");
}

/// Completes a documentation example, in which only what matters is written, to an object.
fn example(yaml: &str) -> Value {
    let mut value: Value = serde_saphyr::from_str(yaml).unwrap_or_else(|e| panic!("{yaml}: {e}"));
    let root = value.as_object_mut().unwrap();
    root.entry("apiVersion").or_insert("ray.io/v1".into());
    root.entry("kind").or_insert("RayCluster".into());
    value
}

#[test]
fn every_bad_example_has_the_finding_and_every_good_one_has_not() {
    for rule in RULES {
        // Rules on changes, facts or policies show them in words; their fixtures prove them.
        let needs_more =
            [3, 5].contains(&(rule.id.0 / 100)) || [114, 115, 117, 238, 401].contains(&rule.id.0);
        let found = |yaml| {
            let object = example(yaml);
            let found = if is_about_written(rule.id) {
                written(&object)
            } else {
                findings(&object, None, &Facts::default())
            };
            found.iter().any(|f| f.rule == rule.id)
        };
        assert!(
            needs_more || found(rule_page::manifest(rule.page, "Reported")),
            "{}: its bad example is fine",
            rule.id
        );
        assert!(
            !found(rule_page::manifest(rule.page, "Corrected")),
            "{}: its good example has the finding",
            rule.id
        );
    }
}

#[test]
fn ids_and_names_are_unique_and_sorted_and_texts_are_sentences() {
    let ids: Vec<u16> = RULES.iter().map(|rule| rule.id.0).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    assert_eq!(
        RULES
            .iter()
            .map(|rule| rule.name)
            .collect::<BTreeSet<_>>()
            .len(),
        RULES.len()
    );
    for rule in RULES {
        let (what, without) = (
            rule_page::what(rule.page),
            rule_page::text(rule.page, "Without this rule"),
        );
        for text in [&what, rule.why, &without] {
            assert!(
                text.ends_with(['.', ')']),
                "{}: no sentence: {text}",
                rule.id
            );
        }
        assert!(
            !rule.summary.ends_with('.'),
            "{}: {}",
            rule.id,
            rule.summary
        );
    }
}

/// No rule may panic, whatever the object looks like.
#[test]
fn malformed_objects_hurt_no_rule() {
    for kind in Kind::ALL {
        let strange = [
            Value::Null,
            1.into(),
            "x".into(),
            Value::Array(vec![1.into()]),
        ];
        for value in strange {
            for pointer in [
                "metadata",
                "spec",
                "spec.workerGroupSpecs",
                "spec.headGroupSpec.template",
            ] {
                let mut root = serde_json::json!({"apiVersion": "ray.io/v1", "kind": kind.name()});
                let mut place = &mut root;
                for key in pointer.split('.') {
                    place = &mut place[key];
                }
                *place = value.clone();
                findings(&root, None, &Facts::default());
            }
        }
    }
}
