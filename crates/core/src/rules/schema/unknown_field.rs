//! RF601: a field that KubeRay's CRD does not have.

use crate::path::Segment;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(601),
    name: "unknown-field",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A field that KubeRay does not have: misspelt, or at the wrong place",
    page: include_str!("unknown_field.md"),
    why: "The API server drops it, so it has no effect; kubectl refuses the object unless it is told \
          not to validate.",
    cel: Cel::NotCovered("The API server drops such fields before it evaluates policies."),
    // Objects at admission have no such field; see `super::find`.
    check: |_, _| {},
};

/// The finding about the field at `path`, with the remedy if what was meant can be guessed.
pub(super) fn finding(path: FieldPath, remedy: Option<String>, kuberay: RayVersion) -> Finding {
    let (major, minor) = (kuberay.major, kuberay.minor);
    let name = match path.segments().last() {
        Some(Segment::Key(name)) => name.clone().into_owned(),
        _ => String::new(),
    };
    let problem = format!("KubeRay {major}.{minor} has no such field here");
    let look_up = || "Remove it, or look up its name in KubeRay's API reference.".to_owned();
    let finding = RULE.finding(path, problem, remedy.unwrap_or_else(look_up));
    finding.valued(name)
}
