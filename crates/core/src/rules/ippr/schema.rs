//! RF101: `ray.io/ippr` is not what Ray can read.

use crate::ray::ippr::{ANNOTATION, EXAMPLE, Ippr, IpprProblem};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(101),
    name: "ippr-schema",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`ray.io/ippr` is not JSON of the form that Ray reads",
    page: include_str!("schema.md"),
    why: "Ray cannot read the annotation and stops autoscaling the whole cluster.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
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
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let annotation = subject.object.annotation_value(ANNOTATION);
    if let Some(value) = annotation.filter(|value| value.as_str().is_none() && !value.is_null()) {
        let finding = RULE.finding(
            FieldPath::annotation(ANNOTATION),
            format!("is {}, not a string", shown(value)),
            format!("Write the JSON as one string, in quotes: '{EXAMPLE}'."),
        );
        let why = "The API server refuses annotations that are not strings.";
        findings.push(finding.because(why).valued(shown(value)));
    }
    // Ray checks the annotation in every round, and an error ends the round, so each of these stops all scaling
    // (`validate_and_set_ippr_specs`).
    let ippr = &subject.object.ippr;
    let problems = ippr.problems.iter();
    findings.extend(problems.map(|problem| finding(problem, ippr, annotation)));
}

fn finding(problem: &IpprProblem, ippr: &Ippr, annotation: Option<Json<'_>>) -> Finding {
    let root = FieldPath::annotation(ANNOTATION);
    let entry = |group: &str, key: &str| {
        let groups = FieldPath::annotation(ANNOTATION).inside("groups");
        groups.inside(group).inside(key)
    };
    let sample = |key: &str| match key {
        "max-cpu" => "\"8\"",
        "max-memory" => "\"32Gi\"",
        _ => "300",
    };
    let whole = annotation.map(shown).unwrap_or_default();
    match problem {
        IpprProblem::NotJson(reason) => {
            let problem = format!("is not JSON: {reason}");
            let fix = format!("Write JSON, for example {EXAMPLE}.");
            RULE.finding(root, problem, fix).valued(whole)
        }
        IpprProblem::NotAnObject => {
            let fix = format!("Write an object, for example {EXAMPLE}.");
            RULE.finding(root, "is JSON, but not an object", fix)
                .valued(whole)
        }
        IpprProblem::NoGroups => {
            let keys = ippr.unknown_keys.iter().map(|place| place.key.as_str());
            let fix = match nearest("groups", keys) {
                Some(typo) => format!("Rename {} to \"groups\".", shown_text(typo)),
                None => format!("Put the groups under the key \"groups\": {EXAMPLE}."),
            };
            let problem = "has keys, but \"groups\" is not one of them";
            let why = "Ray reads only \"groups\" and silently ignores everything else.";
            RULE.finding(root, problem, fix).because(why).valued(whole)
        }
        IpprProblem::NotAnObjectAt { place, found } => {
            let expected = if place.parents.is_empty() {
                "an object of group names"
            } else {
                "an object with max-cpu, max-memory and resize-timeout"
            };
            let problem = format!("is {found}, not {expected}");
            let fix = format!("Write {expected}: {EXAMPLE}.");
            RULE.finding(place.path(), problem, fix).valued(found)
        }
        IpprProblem::Missing { group, key } => {
            let unknown = ippr.unknown_keys.iter();
            let of_group = unknown.filter(|place| place.parents.last() == Some(group));
            let fix = match nearest(key, of_group.map(|place| place.key.as_str())) {
                Some(typo) => format!("Rename {} to {key:?}.", shown_text(typo)),
                None => format!("Add it, for example {key:?}: {}.", sample(key)),
            };
            let problem = "is missing; Ray requires max-cpu, max-memory and resize-timeout";
            RULE.finding(entry(group, key), problem, fix)
        }
        IpprProblem::WrongType {
            group,
            key,
            found,
            wanted,
        } => {
            let problem = format!("is {found}, not {wanted}");
            let fix = format!("Write {wanted}, for example {}.", sample(key));
            let finding = RULE.finding(entry(group, key), problem, fix);
            finding.valued(found.clone())
        }
        IpprProblem::Duplicate(place) => {
            let problem = "occurs twice in the same object";
            let finding = RULE.finding(place.path(), problem, "Keep one of the two.");
            finding.because("Ray silently takes the last one and drops the others.")
        }
    }
}
