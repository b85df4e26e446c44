//! RF601: a field that KubeRay's CRD does not have.

use crate::path::{FieldPath, Segment};
use crate::ray::RayVersion;
use crate::rules::{Cel, Finding, Mode, OwnMode, Rule, RuleId, RulePage, Subject};
use crate::schema::Hint;

/// RF601
pub static RULE: Rule = Rule {
    id: RuleId(601),
    name: "unknown-field",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A field that KubeRay does not have: misspelt, or at the wrong place",
    page: RulePage(include_str!("unknown_field.md")),
    why: "The API server drops it, so it has no effect; kubectl refuses the object unless it is told \
          not to validate.",
    cel: Cel::NotCovered("The API server drops such fields before it evaluates policies."),
    check,
};

/// Objects at admission have no such field; see [`super::find`].
fn check(_: &Subject<'_>, _: &mut Vec<Finding>) {}

/// The finding about the field at `path`.
pub(super) fn finding(path: FieldPath, hint: Option<Hint>, kuberay: RayVersion) -> Finding {
    let (major, minor) = (kuberay.major, kuberay.minor);
    let name = match path.segments().last() {
        Some(Segment::Key(name)) => name.clone().into_owned(),
        _ => String::new(),
    };
    let fix = match hint {
        Some(Hint::Name(name)) => format!("Write {name}, if that is meant."),
        Some(Hint::Place(place)) => format!("Move it to {place}, if that is meant."),
        Some(Hint::Unfold) => "Move the fields in it one level up, and remove it.".to_owned(),
        Some(Hint::Later(version)) => format!(
            "Use KubeRay {}.{} or later, or remove it.",
            version.major, version.minor
        ),
        None => "Remove it, or look up its name in KubeRay's API reference.".to_owned(),
    };
    RULE.finding(
        path,
        format!("KubeRay {major}.{minor} has no such field here"),
        fix,
    )
    .valued(name)
}
