//! Why a text is not a trace: where, what, and what to do.

use std::fmt;

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{place}{fault}")]
pub struct TraceError {
    /// Where in the text.
    pub place: Place,
    /// What is wrong there.
    pub fault: TraceFault,
}

/// Where in a text something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular.
    Whole,
    /// In this line, counted from 1.
    Line(usize),
    /// In what describes this task, whose lines are not known.
    Task(String),
}

impl Place {
    /// The fault at this place.
    pub(super) fn fault(&self, fault: TraceFault) -> TraceError {
        TraceError {
            place: self.clone(),
            fault,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Task(id) => write!(f, "task {}: ", crate::text::shown_text(id)),
        }
    }
}

/// What is wrong with a text, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceFault {
    /// None of the known forms.
    #[error("it has no known form of a workload:\n{0}")]
    UnknownForm(String),
    /// Text that does not have the form it begins with.
    #[error("{0}")]
    Syntax(String),
    /// There is no header.
    #[error(
        "the header is missing; write this as the first line: \
         {{\"apiVersion\":\"rayfit.dev/v1alpha1\",\"kind\":\"Trace\",\"name\":\"...\"}}"
    )]
    NoHeader,
    /// A version that this release does not know.
    #[error("version {found} is not known; {remedy}")]
    Version {
        /// What the text has, quoted.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A field or column that there is not.
    #[error("there is no {what} {found}; {remedy}")]
    UnknownName {
        /// What was named: a field, a column, a job.
        what: &'static str,
        /// The name, quoted.
        found: String,
        /// What was meant perhaps, or what there is.
        remedy: String,
    },
    /// A field that is needed and is not there.
    #[error("{field} is missing; {remedy}")]
    Missing {
        /// The field, or several of which one is needed.
        field: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A value that cannot be.
    #[error("{what} is {value}; {expected}")]
    Value {
        /// What it is a value of.
        what: String,
        /// The value.
        value: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// Two jobs of the same id.
    #[error("there is a job {0} before; ids are unique")]
    Duplicate(String),
    /// Jobs that wait for each other.
    #[error("it waits for itself through after; take out one of the jobs in the circle")]
    Circle,
    /// More than is taken.
    #[error("there are more than {most} {what}; {remedy}")]
    Many {
        /// The things of which there are too many.
        what: &'static str,
        /// How many are taken.
        most: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// There is nothing in it.
    #[error("there is no job in it{0}")]
    Empty(&'static str),
}

/// What a JSON parser says, without the place, which is said apart.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A document that is not JSON, or not of the form that its first fields promise.
pub(super) fn syntax(error: &serde_json::Error, form: &str) -> TraceError {
    let fault = TraceFault::Syntax(format!("no {form}: {}", reason(error)));
    match error.line() {
        0 => Place::Whole.fault(fault),
        line => Place::Line(line).fault(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_parser_says_its_place_once() {
        let error = serde_json::from_str::<u8>("\n\"x\"").unwrap_err();
        assert_eq!(
            syntax(&error, "number").to_string(),
            "line 2: no number: invalid type: string \"x\", expected u8"
        );
    }
}
