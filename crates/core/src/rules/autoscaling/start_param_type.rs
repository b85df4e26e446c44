//! RF225: a start parameter that is not a string.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(225),
    name: "start-param-type",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A value in `rayStartParams` is not a string",
    page: include_str!("start_param_type.md"),
    why: "The API server refuses the object, with a message that does not say that quotes are \
          missing.",
    cel: Cel::NotCovered(
        "The API server itself refuses such an object, before it evaluates any \
                     policy.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.groups() {
        for (key, value) in group.start_params.unwrap_or_default().iter() {
            // The parameters become flags of `ray start`, so their schema is a map of strings (KubeRay,
            // `RayStartParams`), and YAML reads 4 and true without quotes as others.
            if value.as_str().is_some() {
                continue;
            }
            // Messages end up in logs; `redis-password` is the only secret among the flags of `ray start`.
            let is_secret = key.contains("password");
            let visible = if is_secret {
                "the value".to_owned()
            } else {
                shown(value)
            };
            let json = value.to_string();
            let quoted = match value {
                _ if is_secret => "\"<the value>\"".to_owned(),
                // JSON needs further quotes inside, for the shell.
                Json::Object(_) | Json::Array(_) => format!("'{}'", Value::String(json)),
                _ => Value::String(json).to_string(),
            };
            let path = group.start_param_path(key.to_owned());
            let finding = if value.is_null() {
                let fix = format!("Write {key}: \"\" for a flag without a value, or remove {key}.");
                RULE.finding(path, "null is not a string", fix)
                    .because("The API server drops it silently, and the flag is not set.")
            } else {
                let fix = format!("Write it in quotes: {key}: {quoted}");
                RULE.finding(path, format!("{visible} is not a string"), fix)
            };
            findings.push(finding.valued(visible));
        }
    }
}
