//! The error of a text that is no trace: place, fault and remedy.

use std::fmt;

use crate::text::{nearest, shown_text};

/// The error of a text that is no trace.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{place}{fault}")]
pub struct TraceError {
    /// The place in the text.
    pub place: Place,
    /// The fault there.
    pub fault: TraceFault,
}

/// The place of a fault in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular.
    Whole,
    /// In this line, counted from 1.
    Line(usize),
    /// In the description of this task, whose lines are not known.
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

    /// A name at this place that there is not, with the one that was perhaps meant, or else another remedy.
    pub(super) fn unknown<'a>(
        &self,
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> String,
    ) -> TraceError {
        let remedy = nearest(name, known).map_or_else(otherwise, |near| {
            format!("did you mean {}?", shown_text(near))
        });
        let found = shown_text(name);
        self.fault(TraceFault::UnknownName {
            what,
            found,
            remedy,
        })
    }

    /// A value that cannot be at this place.
    pub(super) fn wrong(&self, what: &str, value: String, expected: &'static str) -> TraceError {
        self.fault(TraceFault::Value {
            what: what.to_owned(),
            value,
            expected,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Task(id) => write!(f, "task {}: ", shown_text(id)),
        }
    }
}

/// A fault of a text, with its remedy.
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
        /// The version in the text, quoted.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A field or column that there is not.
    #[error("there is no {what} {found}; {remedy}")]
    UnknownName {
        /// The kind of the name: a field, a column, a job.
        what: &'static str,
        /// The name, quoted.
        found: String,
        /// The name that was perhaps meant, or those that exist.
        remedy: String,
    },
    /// A field that is needed and is not there.
    #[error("{field} is missing; {remedy}")]
    Missing {
        /// The field, or several of which one is needed.
        field: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A value that cannot be.
    #[error("{what} is {value}; {expected}")]
    Value {
        /// The name of the thing whose value it is.
        what: String,
        /// The value.
        value: String,
        /// The values that are allowed.
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
        /// The most that are taken.
        most: usize,
        /// The remedy.
        remedy: &'static str,
    },
    /// There is nothing in it.
    #[error("there is no job in it{0}")]
    Empty(&'static str),
}

/// The message of a JSON parser, without the place, which is said apart.
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
