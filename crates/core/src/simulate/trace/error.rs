//! The error of a text that is no trace: place, fault and remedy.

use crate::text::{nearest, shown_text};

/// The error of a text that is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{fault}")]
pub struct TraceError {
    /// The place in the text.
    pub place: Place,
    /// The fault there, with its remedy.
    pub fault: String,
}

/// The place of a fault in a text.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Place {
    /// Nowhere in particular.
    #[display("")]
    Whole,
    /// In this line, counted from 1.
    #[display("line {_0}: ")]
    Line(usize),
    /// In the description of this task, whose lines are not known.
    #[display("task {}: ", shown_text(_0))]
    Task(String),
}

impl Place {
    /// A fault at this place.
    pub(super) fn fault(&self, fault: impl Into<String>) -> TraceError {
        TraceError {
            place: self.clone(),
            fault: fault.into(),
        }
    }

    /// A name at this place that there is not, with the one that was perhaps meant, or else another remedy.
    pub(super) fn unknown<'a>(
        &self,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> String,
    ) -> TraceError {
        let remedy = nearest(name, known).map_or_else(otherwise, |near| {
            format!("did you mean {}?", shown_text(near))
        });
        let name = shown_text(name);
        self.fault(format!("there is no {what} {name}; {remedy}"))
    }

    /// A value that cannot be at this place.
    pub(super) fn wrong(&self, what: &str, value: &str, expected: &str) -> TraceError {
        self.fault(format!("{what} is {value}; {expected}"))
    }

    /// A field that is needed and absent.
    pub(super) fn missing(&self, field: &str, remedy: &str) -> TraceError {
        self.fault(format!("{field} is missing; {remedy}"))
    }

    /// More of something than is taken.
    pub(super) fn many(&self, most: usize, what: &str, remedy: &str) -> TraceError {
        self.fault(format!("there are more than {most} {what}; {remedy}"))
    }
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
    let fault = format!("no {form}: {}", reason(error));
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
