//! RF602: a value that the API server refuses because of KubeRay's CRD.

use crate::rules::prelude::*;
use crate::schema::SchemaFault;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(602),
    name: "refused-value",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A value of a wrong type, one that is not allowed, or an absent field that is required",
    page: include_str!("refused_value.md"),
    why: "The API server refuses the object.",
    cel: Cel::NotCovered("The API server refuses such objects by KubeRay's CRD already."),
    // Objects at admission have no such value; see `super::find`.
    check: |_, _| {},
};

/// The finding about the value at `path`.
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
