//! RF101: `ray.io/ippr` is not what Ray can read.

use serde_json::Value;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::ippr::{ANNOTATION, EXAMPLE, Ippr, IpprProblem, KeyPlace};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{nearest, shown, shown_text};

/// RF101
pub static RULE: Rule = Rule {
    id: RuleId(101),
    name: "ippr-schema",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`ray.io/ippr` is not JSON of the form that Ray reads",
    page: RulePage(include_str!("schema.md")),
    why: "Ray cannot read the annotation and stops autoscaling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Object,
        mode: Mode::Enforce,
        // CEL cannot parse JSON. A text with a backslash may spell a key by an escape such as
        // `\u0067`, so such a text is not searched for keys: a policy may find nothing that the
        // webhook does not find.
        faults: r#"(s.ippr != '' && !s.ippr.matches(r'(?s)^\s*\{.*\}\s*$') ? ['is not a JSON object'] : [])
+ (s.ippr.matches(r'^\s*\{\s*[^"}\s]') ? ['is not JSON: its keys are not in quotes'] : [])
+ (s.ippr.matches(r'^\s*\{\s*"') && !s.ippr.contains('"groups"') && !s.ippr.contains('\\') ? ['has no key "groups"'] : [])
+ (s.ippr.matches(r'^\s*\{\s*"groups"\s*:\s*[^{\s]') ? ['its "groups" is not an object'] : [])
+ (s.ippr.matches(r'^\s*\{\s*"groups"\s*:\s*\{\s*"[^"\\]*"\s*:\s*[^{\s]') ? ['a group in it is not an object'] : [])
+ s.entries.filter(e, !e.matches(r'"max-cpu"\s*:\s*[^{\s]')).map(e, 'max-cpu is missing in ' + e)
+ s.entries.filter(e, !e.matches(r'"max-memory"\s*:\s*[^{\s]')).map(e, 'max-memory is missing in ' + e)
+ s.entries.filter(e, !e.matches(r'"resize-timeout"\s*:\s*[^{\s]')).map(e, 'resize-timeout is missing in ' + e)
+ s.entries.filter(e, e.matches(r'"max-(cpu|memory)"\s*:\s*(true|false|null)')).map(e, 'a resize limit is not a quantity in ' + e)
+ s.entries.filter(e, e.matches(r'"resize-timeout"\s*:\s*("|true|false|null)')).map(e, 'resize-timeout is not a number in ' + e)"#,
        fix: r#"Write {"groups":{"workers":{"max-cpu":"8","max-memory":"32Gi","resize-timeout":300}}}."#,
    }],
    "Other errors in the JSON, duplicate keys and fractions of bytes or seconds are accepted, \
     because CEL cannot parse JSON.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let annotation = subject.object.annotation_value(ANNOTATION);
    if let Some(value) = annotation.filter(|value| !value.is_string() && !value.is_null()) {
        findings.add(no_text(value));
    }
    let ippr = &subject.object.ippr;
    for problem in &ippr.problems {
        findings.add(finding(problem, ippr, annotation));
    }
}

fn root() -> FieldPath {
    FieldPath::annotation(ANNOTATION)
}

fn no_text(value: &Value) -> Finding {
    RULE.finding(
        root(),
        format!("is {}, not a string", shown(value)),
        format!("Write the JSON as one string, in quotes: '{EXAMPLE}'."),
    )
    .because("The API server refuses annotations that are not strings.")
    .valued(shown(value))
}

fn finding(problem: &IpprProblem, ippr: &Ippr, annotation: Option<&Value>) -> Finding {
    let whole = || annotation.map(shown).unwrap_or_default();
    match problem {
        IpprProblem::NotJson(reason) => RULE
            .finding(
                root(),
                format!("is not JSON: {reason}"),
                format!("Write JSON, for example {EXAMPLE}."),
            )
            .valued(whole()),
        IpprProblem::NotAnObject => RULE
            .finding(
                root(),
                "is JSON, but not an object",
                format!("Write an object, for example {EXAMPLE}."),
            )
            .valued(whole()),
        IpprProblem::NoGroups => no_groups(ippr).valued(whole()),
        IpprProblem::NotAnObjectAt { place, found } => not_an_object(place, found),
        IpprProblem::Missing { group, key } => missing(ippr, group, key),
        IpprProblem::WrongType {
            group,
            key,
            found,
            wanted,
        } => RULE
            .finding(
                entry(group).inside(*key),
                format!("is {found}, not {wanted}"),
                format!("Write {wanted}, for example {}.", sample(key)),
            )
            .valued(found.clone()),
        IpprProblem::Duplicate(place) => RULE
            .finding(
                place.path(),
                "occurs twice in the same object",
                "Keep one of the two.",
            )
            .because("Ray silently takes the last one and drops the others."),
    }
}

fn no_groups(ippr: &Ippr) -> Finding {
    let keys = ippr.unknown_keys.iter().map(|place| place.key.as_str());
    let typo = nearest("groups", keys);
    RULE.finding(
        root(),
        "has keys, but \"groups\" is not one of them",
        match typo {
            Some(typo) => format!("Rename {} to \"groups\".", shown_text(typo)),
            None => format!("Put the groups under the key \"groups\": {EXAMPLE}."),
        },
    )
    .because("Ray reads only \"groups\" and silently ignores everything else.")
}

fn not_an_object(place: &KeyPlace, found: &str) -> Finding {
    let wanted = if place.parents.is_empty() {
        "an object of group names"
    } else {
        "an object with max-cpu, max-memory and resize-timeout"
    };
    RULE.finding(
        place.path(),
        format!("is {found}, not {wanted}"),
        format!("Write {wanted}: {EXAMPLE}."),
    )
    .valued(found)
}

fn missing(ippr: &Ippr, group: &str, key: &'static str) -> Finding {
    let strangers = ippr
        .unknown_keys
        .iter()
        .filter(|place| place.parents.last().is_some_and(|parent| parent == group))
        .map(|place| place.key.as_str());
    let fix = match nearest(key, strangers) {
        Some(typo) => format!("Rename {} to {key:?}.", shown_text(typo)),
        None => format!("Add it, for example {key:?}: {}.", sample(key)),
    };
    RULE.finding(
        entry(group).inside(key),
        "is missing; Ray requires max-cpu, max-memory and resize-timeout",
        fix,
    )
}

fn entry(group: &str) -> FieldPath {
    root().inside("groups").inside(group)
}

fn sample(key: &str) -> &'static str {
    match key {
        "max-cpu" => "\"8\"",
        "max-memory" => "\"32Gi\"",
        _ => "300",
    }
}
