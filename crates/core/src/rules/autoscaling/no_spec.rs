//! RF230: an object without a spec.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(230),
    name: "no-spec",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "The object has no `spec`",
    page: include_str!("no_spec.md"),
    why: "It describes no cluster, and programs that list Ray objects of all namespaces may fail \
          on it.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r"has(s.object.spec) ? [] : ['spec is absent']",
        fix: "Add a spec, or delete the object.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // The CRDs require fields inside of `spec` but not `spec` itself, so the API server stores such an object, and a
    // client that requires the field fails on the whole list that has it.
    let problem = match subject.object.root.get("spec") {
        None => "is absent",
        Some(Json::Null) => "is null",
        Some(_) => return,
    };
    let fix = format!(
        "Add the spec of the {}, or delete the object.",
        subject.object.kind.name()
    );
    findings.push(RULE.finding(FieldPath::of(&["spec"]), problem, fix));
}
