//! RF106: the group's `resources` fix the CPU or memory of a listed group.

use crate::ray::start_params;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(106),
    name: "ippr-group-resources",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`resources` fixes the CPU or memory of a group that grows in place",
    page: include_str!("group_resources.md"),
    why: "The raylet would start with this amount whatever the pod has, so that Ray plans with a \
          wrong size.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Listed,
            // Ray deletes all backslashes before it parses the start parameter, so they hide no key
            // here either.
            faults: r#"g.resources.filter(k, k.lowerAscii() in ['cpu', 'memory']).map(k, '.resources.' + k + ' "' + string(g.resources[k]) + '" fixes the size of a group that is to grow in place')
+ (g.resources.size() == 0 && g.params[?'resources'].orValue('').replace('\\', '').matches(r'(?i)"(cpu|memory)"\s*:') ? ['.rayStartParams.resources fixes the size of a group that is to grow in place'] : [])"#,
            fix: "Remove it; Ray takes the size from the ray container's limits.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let is_size = |(key, _): &(&str, Json<'_>)| {
        key.eq_ignore_ascii_case("cpu") || key.eq_ignore_ascii_case("memory")
    };
    for (group, _) in subject.listed_groups() {
        for (key, value) in group.resources.unwrap_or_default().iter().filter(is_size) {
            let path = group.path().key("resources").key(key.to_owned());
            findings.push(fixed_size(&RULE, group, path, key, value));
        }
        // A text that Ray cannot read is left to RF205.
        let params = match group.start_param("resources") {
            Some(Json::String(text)) => start_params::start_resources_object(text).ok(),
            Some(Json::Object(map)) => Some(map.to_map().into_owned()),
            _ => None,
        };
        let params = params.as_ref().map(Fields::from);
        for (key, value) in params.unwrap_or_default().iter().filter(is_size) {
            let why = match key {
                // `ray start --resources` refuses the names of resources that have a flag of their own.
                "CPU" | "memory" => {
                    "Ray does not start with it: it wants CPU and memory elsewhere."
                }
                _ => {
                    "Ray takes it for a resource of its own that has nothing to do with the pod's \
                     size and never grows."
                }
            };
            let path = group.start_param_path("resources").inside(key);
            findings.push(fixed_size(&RULE, group, path, key, value).because(why));
        }
    }
}

/// The finding of a rule about a value that fixes the size of a group with resize limits.
pub(super) fn fixed_size(
    rule: &Rule,
    group: &Group<'_>,
    path: FieldPath,
    key: &str,
    value: Json<'_>,
) -> Finding {
    let problem = format!(
        "{} fixes the size of a group that is to grow in place",
        shown(value)
    );
    let fix = format!(
        "Remove {key}; Ray takes the size from the ray container's limits. Or remove {} from the \
         ray.io/ippr annotation.",
        group.title(),
    );
    rule.finding(path, problem, fix)
        .valued(shown(value))
        .mended_by_removal()
}
