//! RF602: a value that the API server refuses because of KubeRay's CRD.

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::schema::SchemaFault;

/// RF602
pub static RULE: Rule = Rule {
    id: RuleId(602),
    name: "refused-value",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A value of a wrong type, one that is not allowed, or an absent field that is required",
    what: "Compares every value of the spec, those of the pod templates included, with KubeRay's CRD \
           of the version that `--kuberay-version` names (1.4 to 1.7), and reports wrong types, texts other than those \
           that are allowed, numbers that are too small, counts that need more than 32 bits, and required fields that are absent. A text with `${`, `$(` or `{{` may \
           stand anywhere. Only `rayfit check` does it, because no such object comes to admission. \
           Patterns of texts are not compared.",
    why: "The API server refuses the object.",
    bad: "
spec:
  rayVersion: 2.60
  autoscalerOptions: {upscalingMode: Fast}
  headGroupSpec:
    template:
      spec:
        containers:
        - {name: ray-head, env: [{name: WORKERS, value: 4}]}
",
    good: "
spec:
  rayVersion: \"2.60.0\"
  autoscalerOptions: {upscalingMode: Aggressive}
  headGroupSpec:
    template:
      spec:
        containers:
        - {name: ray-head, env: [{name: WORKERS, value: \"4\"}]}
",
    without: "The API server validates custom resources by their CRD and names all such places at \
              once, but only there: in CI it is found after the merge. YAML reads 2.60, 4 and true without quotes as a number and a \
              boolean.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("The API server refuses such objects by KubeRay's CRD already.");

/// Objects at admission have no such value; see [`super::find`].
fn check(_: &Subject<'_>, _: &mut Findings) {}

/// What is to be said of the value at `path`.
pub(super) fn finding(path: FieldPath, fault: &SchemaFault) -> Finding {
    let (problem, fix) = match fault {
        SchemaFault::Missing => (
            "is required, and is absent".to_owned(),
            "Write it.".to_owned(),
        ),
        SchemaFault::WrongType { found, expected } => (
            format!("is {found}, and must be {expected}"),
            match (*expected, *found) {
                (
                    "a string" | "a string or an integer",
                    "an integer" | "a fraction" | "true or false",
                ) => "Put the value in quotes.".to_owned(),
                ("an integer" | "a number" | "true or false", "a string") => {
                    format!("Write {expected}, without quotes.")
                }
                _ => format!("Write {expected}."),
            },
        ),
        SchemaFault::NotAllowed(allowed) => (
            "is not one of the allowed values".to_owned(),
            format!("Write one of {}.", allowed.join(", ")),
        ),
        SchemaFault::TooSmall(least) => (
            format!("is less than {least}"),
            format!("Write {least} or more."),
        ),
        SchemaFault::TooLarge => (
            "needs more than 32 bits".to_owned(),
            format!("Write {} at the most.", i32::MAX),
        ),
        SchemaFault::Unknown(_) => ("is no field".to_owned(), "Remove it.".to_owned()),
    };
    RULE.finding(path, problem, fix)
}
