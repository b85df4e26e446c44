//! RF106: the group's `resources` fix the CPU or memory of a listed group.

use serde_json::Value;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{Group, start_params};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown;

/// RF106
pub static RULE: Rule = Rule {
    id: RuleId(106),
    name: "ippr-group-resources",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`resources` fixes the CPU or memory of a group that grows in place",
    page: RulePage(include_str!("group_resources.md")),
    why: "The raylet would start with this amount whatever the pod has, so that Ray plans with a \
          wrong size.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Listed,
        mode: Mode::Enforce,
        // Ray deletes all backslashes before it parses the start parameter, so they hide no key
        // here either.
        faults: r#"g.resources.filter(k, k.lowerAscii() in ['cpu', 'memory']).map(k, '.resources.' + k + ' "' + string(g.resources[k]) + '" fixes the size of a group that is to grow in place')
+ (g.resources.size() == 0 && g.params[?'resources'].orValue('').replace('\\', '').matches(r'(?i)"(cpu|memory)"\s*:') ? ['.rayStartParams.resources fixes the size of a group that is to grow in place'] : [])"#,
        fix: "Remove it; Ray takes the size from the ray container's limits.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for (group, _) in subject.listed_groups() {
        for (key, value) in group.resources().into_iter().flatten() {
            if fixes_size(key) {
                let path = group.path().key("resources").key(key.clone());
                findings.add(finding(group, path, key, value));
            }
        }
        if let Some(value) = group.start_param("resources") {
            check_start_params(group, value, findings);
        }
    }
}

/// A text that Ray cannot read is left to RF205.
fn check_start_params(group: &Group<'_>, value: &Value, findings: &mut Findings) {
    let map = match value {
        Value::String(text) => start_params::start_resources_object(text).ok(),
        Value::Object(map) => Some(map.clone()),
        _ => None,
    };
    for (key, value) in map.iter().flatten().filter(|(key, _)| fixes_size(key)) {
        let path = group.start_param_path("resources").inside(key.as_str());
        let finding = finding(group, path, key, value);
        findings.add(match key.as_str() {
            // `ray start --resources` refuses the names of resources that have a flag of their own.
            "CPU" | "memory" => {
                finding.because("Ray does not start with it: it wants CPU and memory elsewhere.")
            }
            _ => finding.because(
                "Ray takes it for a resource of its own that has nothing to do with the pod's \
                 size and never grows.",
            ),
        });
    }
}

fn fixes_size(key: &str) -> bool {
    key.eq_ignore_ascii_case("cpu") || key.eq_ignore_ascii_case("memory")
}

fn finding(group: &Group<'_>, path: FieldPath, key: &str, value: &Value) -> Finding {
    RULE.finding(
        path,
        format!(
            "{} fixes the size of a group that is to grow in place",
            shown(value)
        ),
        format!(
            "Remove {key}; Ray takes the size from the ray container's limits. Or remove {} from \
             the ray.io/ippr annotation.",
            group.title(),
        ),
    )
    .valued(shown(value))
}
