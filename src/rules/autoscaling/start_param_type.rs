//! RF225: a start parameter that is not a string.

use serde_json::Value;

use crate::finding::Finding;
use crate::policy::Mode;
use crate::ray::Group;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF225
pub static RULE: Rule = Rule {
    id: RuleId(225),
    name: "start-param-type",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A value in `rayStartParams` is not a string",
    page: RulePage(include_str!("start_param_type.md")),
    why: "The API server refuses the object, with a message that does not say that quotes are \
          missing.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered(
    "The API server itself refuses such an object, before it evaluates any \
                     policy.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.groups() {
        for (key, value) in group.start_params().into_iter().flatten() {
            if !value.is_string() {
                findings.add(finding(group, key, value));
            }
        }
    }
}

fn finding(group: &Group<'_>, key: &str, value: &Value) -> Finding {
    let path = group.start_param_path(key.to_owned());
    let found = if value.is_null() {
        RULE.finding(
            path,
            "null is not a string",
            format!("Write {key}: \"\" for a flag without a value, or remove {key}."),
        )
        .because("The API server drops it silently, and the flag is not set.")
    } else {
        RULE.finding(
            path,
            format!("{} is not a string", visible(key, value)),
            format!("Write it in quotes: {key}: {}", quoted(key, value)),
        )
    };
    found.valued(visible(key, value))
}

/// The value as a YAML string; a value with JSON needs further quotes inside, for the shell.
fn quoted(key: &str, value: &Value) -> String {
    if is_secret(key) {
        return "\"<the value>\"".to_owned();
    }
    let text = value.to_string();
    if value.is_object() || value.is_array() {
        format!("'{}'", Value::String(text))
    } else {
        Value::String(text).to_string()
    }
}

/// The value as messages may show it: they end up in logs.
fn visible(key: &str, value: &Value) -> String {
    if is_secret(key) {
        "the value".to_owned()
    } else {
        shown(value)
    }
}

/// `redis-password` is the only secret among the flags of `ray start`.
fn is_secret(key: &str) -> bool {
    key.contains("password")
}
