use std::collections::BTreeSet;

use super::*;
use crate::policy::Settings;
use crate::rule_id::RuleId;
use crate::rules::{Cel, OwnMode};

fn with(settings: Settings) -> Vec<Value> {
    objects(&VapOptions {
        settings,
        ..VapOptions::default()
    })
}

fn names<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a str> {
    let of_kind = objects.iter().filter(|object| object["kind"] == kind);
    of_kind
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[test]
fn each_policy_has_a_name_of_its_own_and_a_binding() {
    let objects = with(Settings::default());
    let policies = names(&objects, "ValidatingAdmissionPolicy");
    assert_eq!(
        policies,
        names(&objects, "ValidatingAdmissionPolicyBinding")
    );
    assert_eq!(
        policies.iter().collect::<BTreeSet<_>>().len(),
        policies.len()
    );
    for object in &objects {
        let spec = &object["spec"];
        let named = spec
            .get("policyName")
            .unwrap_or(&object["metadata"]["name"]);
        assert_eq!(named, &object["metadata"]["name"]);
    }
}

#[test]
fn a_rule_has_policies_exactly_if_it_is_covered() {
    let objects = with(Settings::default());
    let policies = names(&objects, "ValidatingAdmissionPolicy");
    for rule in RULES {
        let id = rule.id.to_string().to_lowercase();
        let there = policies.iter().any(|name| name.starts_with(&id));
        assert_eq!(there, !matches!(rule.cel, Cel::NotCovered(_)), "{id}");
    }
}

#[test]
fn a_rule_that_does_not_go_by_case_has_expressions_of_its_own_mode_only() {
    for rule in RULES {
        if let OwnMode::Always(_) = rule.mode {
            assert!(rule.cel.warnings().is_empty(), "{}", rule.id);
        }
    }
}

#[test]
fn settings_decide_what_a_policy_leads_to() {
    let mut settings = Settings::default();
    settings.modes.set(RuleId(105), Mode::Off);
    settings.modes.set(RuleId(201), Mode::Audit);
    settings.modes.set(RuleId(213), Mode::Enforce);
    let objects = with(settings);
    let actions = |prefix: &str| -> Vec<Value> {
        let bindings = objects.iter().filter(|object| {
            object["kind"] == "ValidatingAdmissionPolicyBinding"
                && object["metadata"]["name"]
                    .as_str()
                    .unwrap()
                    .starts_with(prefix)
        });
        bindings
            .map(|binding| binding["spec"]["validationActions"].clone())
            .collect()
    };
    assert_eq!(actions("rf105"), Vec::<Value>::new());
    assert_eq!(
        actions("rf201"),
        [serde_json::json!(["Audit"]), serde_json::json!(["Audit"])]
    );
    assert_eq!(actions("rf213"), [serde_json::json!(["Deny"])]);
    assert_eq!(actions("rf106"), [serde_json::json!(["Deny"])]);
    assert_eq!(actions("rf214"), [serde_json::json!(["Audit"])]);
}

#[test]
fn sentences_are_sentences() {
    for rule in RULES {
        for check in rule.checks().flat_map(|(_, checks)| checks) {
            assert!(check.fix.ends_with('.'), "{}: {}", rule.id, check.fix);
        }
        if let (_, Some(gap)) = rule.cel.coverage() {
            assert!(gap.ends_with('.'), "{}: {gap}", rule.id);
        }
    }
}

#[test]
fn defaults_come_only_when_asked_for() {
    let kind = "MutatingAdmissionPolicy";
    let options = VapOptions::default();
    assert_eq!(names(&objects(&options), kind), Vec::<&str>::new());
    let options = VapOptions {
        defaults: true,
        ..options
    };
    assert_eq!(names(&objects(&options), kind).len(), 2);
}
