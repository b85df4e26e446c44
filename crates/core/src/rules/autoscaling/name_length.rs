//! RF224: a name from which KubeRay cannot make names.

use crate::ray::label;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(224),
    name: "name-length",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "The object's name is too long for KubeRay, or not a DNS label",
    page: include_str!("name_length.md"),
    why: "KubeRay derives the names of pods, services and jobs from it; it refuses the object and \
          creates nothing.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r#"[s.object.kind == 'RayCluster' ? 53 : s.object.kind == 'RayCronJob' ? 36 : 47].map(most, s.name.size() > most
  ? 'metadata.name has ' + string(s.name.size()) + ' characters, more than the ' + string(most) + ' that are possible' : '')
+ (s.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') ? [] : ['metadata.name ' + s.name + ' is not a DNS label'])"#,
        fix: "Use lower-case letters, digits and dashes; begin with a letter and end with a letter or digit.",
    }]),
    check,
};

/// The number of characters that the API server appends to `generateName`.
const GENERATED: usize = 5;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let object = subject.object;
    let most = match object.kind {
        // KubeRay appends `-serve-svc`, and the name of a Service has 63 characters at most
        // (KubeRay's `utils/constant.go`).
        Kind::RayCluster => 53,
        // The name of their cluster has a dash and five letters more.
        Kind::RayJob | Kind::RayService => 47,
        Kind::RayCronJob => 36,
    };
    let kind = object.kind.name();
    let mut report = |key: &'static str, value: &str, problem: String, fix: String| {
        let path = FieldPath::of(&["metadata", key]);
        findings.push(RULE.finding(path, problem, fix).valued(value));
    };
    // The API server takes names of 253 characters with dots. KubeRay then does nothing with the object, whose name
    // can never be changed.
    if let Some(name) = object.name() {
        let length = name.len();
        if length > most {
            report(
                "name",
                name,
                format!("has {length} characters, more than a {kind} may have"),
                format!("Shorten the name to at most {most} characters."),
            );
        }
        if !label::is_dns_1035(name) {
            report(
                "name",
                name,
                format!("{} is not a DNS label", shown_text(name)),
                "Use lower-case letters, digits and dashes; begin with a letter and end with a \
                 letter or digit."
                    .to_owned(),
            );
        }
    } else if let Some(prefix) = object.generate_name() {
        let length = prefix.len() + GENERATED;
        if length > most {
            report(
                "generateName",
                prefix,
                format!("leads to names of {length} characters, more than a {kind} may have"),
                format!("Shorten it to at most {} characters.", most - GENERATED),
            );
        }
        if !label::begins_dns_1035(prefix) {
            report(
                "generateName",
                prefix,
                format!("{} makes names that are not DNS labels", shown_text(prefix)),
                "Use lower-case letters, digits and dashes, and begin with a letter.".to_owned(),
            );
        }
    } else if let Some(value) = object.metadata().and_then(|meta| meta.get("name"))
        // YAML makes numbers and booleans of names such as 1 and true that have no quotes.
        && matches!(value, Json::Number(_) | Json::Bool(_))
    {
        let finding = RULE.finding(
            FieldPath::of(&["metadata", "name"]),
            format!("{} is not a string", shown(value)),
            "Write a name that begins with a letter, for example ray-1.",
        );
        let why = "The API server refuses the object.";
        findings.push(finding.because(why).valued(shown(value)));
    }
}
