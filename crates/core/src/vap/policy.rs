//! The policy of one rule in one mode.

use serde_json::{Value, json};

use super::matching::{self, constraints};
use super::{VapOptions, variables};
use crate::manifests::webhooks::NOT_ENDED;
use crate::policy::Mode;
use crate::rules::{Check, Each, OwnMode, Rule};

/// The policy and its binding. `check_mode` is the mode of the expressions, `mode` the one under the
/// settings.
pub(super) fn objects(
    rule: &Rule,
    (check_mode, checks): (Mode, &[Check]),
    mode: Mode,
    options: &VapOptions,
) -> [Value; 2] {
    let id = rule.id.to_string().to_lowercase();
    // A rule whose mode depends on the case has a policy for each of its modes.
    let name = match rule.mode {
        OwnMode::Always(_) => format!("{id}-{}.rayfit.dev", rule.name),
        OwnMode::ByCase(_) => format!("{id}-{}-{check_mode}.rayfit.dev", rule.name),
    };
    // A fault that an object had before an update never denies the update; warnings and records include all
    // faults of the new object.
    let reported = match mode {
        Mode::Enforce => {
            "variables.faults[0].filter(f, variables.faults.size() < 2 || !(f in variables.faults[1]))"
        }
        _ => "variables.faults[0]",
    };
    let policy = json!({
        "failurePolicy": options.failure_policy.name(),
        "matchConstraints": constraints(options),
        // Requests that are never checked: updates that end an object, and those of `matching::conditions`.
        "matchConditions": matching::conditions(options, "not-ended-by-it", NOT_ENDED),
        "variables": [
            { "name": "subjects", "expression": variables::SUBJECTS },
            { "name": "faults", "expression": faults(checks) },
            { "name": "reported", "expression": reported }
        ],
        "validations": [{
            "expression": "variables.reported.size() == 0",
            "messageExpression": message_expression(rule, checks),
            // The API server shows this instead of a longer message than it allows.
            "message": format!("{} {}: {}", rule.id, rule.name, rule.summary.replace('`', "")),
            "reason": "Invalid"
        }]
    });
    let action = match mode {
        Mode::Enforce => "Deny",
        Mode::Warn => "Warn",
        Mode::Audit | Mode::Off => "Audit",
    };
    let binding = json!({ "policyName": name, "validationActions": [action] });
    [
        matching::object("ValidatingAdmissionPolicy", &name, &policy),
        matching::object("ValidatingAdmissionPolicyBinding", &name, &binding),
    ]
}

/// The texts of faults of the object and of the stored object.
fn faults(checks: &[Check]) -> String {
    let lists: Vec<String> = checks.iter().map(of_check).collect();
    format!(
        "variables.subjects.map(s, [\n{}\n].join('\\n').split('\\n').filter(f, f != ''))",
        lists.join(",\n")
    )
}

/// All faults that a check finds in the object `s`, in lines.
fn of_check(check: &Check) -> String {
    let faults = check.faults;
    // CEL cannot flatten lists before Kubernetes 1.34, so lists are joined as lines.
    let groups = |filter: &str| format!("s.groups{filter}.map(g, {}).join('\\n')", placed(faults));
    match check.each {
        Each::Object => format!("({faults}).join('\\n')"),
        Each::Group => groups(""),
        Each::Head => groups(".filter(g, g.head)"),
        Each::Worker => groups(".filter(g, !g.head)"),
        Each::Listed => format!(
            "{}.map(l, [l.g].map(g, {}).join('\\n')).join('\\n')",
            variables::LISTED,
            placed(faults)
        ),
        // Evaluated once, for the pair of new and stored object.
        Each::Change => format!(
            "(variables.subjects.size() < 2 ? [] : [variables.subjects[1]].map(old, ({faults}).join('\\n'))).join('\\n')"
        ),
    }
}

/// The faults of the group `g`, in lines, each with the group's path before it.
fn placed(faults: &str) -> String {
    format!("({faults}).join('\\n').split('\\n').filter(f, f != '').map(f, g.path + f).join('\\n')")
}

/// The expression of the message.
fn message_expression(rule: &Rule, checks: &[Check]) -> String {
    let mut fixes: Vec<&str> = Vec::new();
    for check in checks {
        if !fixes.contains(&check.fix) {
            fixes.push(check.fix);
        }
    }
    let head = Value::from(format!("{} {}: ", rule.id, rule.name));
    let end = Value::from(format!(". {}", fixes.join(" ")));
    // The API server requires one line.
    format!("{head} + variables.reported.join('; ') + {end}")
}
