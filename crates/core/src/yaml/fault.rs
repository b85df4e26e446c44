//! The error of a text that cannot be read, and its remedy.

use super::position::Position;

/// Longest text that is read, in bytes; no manifest that an API server takes comes near it.
pub const MAX_BYTES: usize = 16 << 20;

/// The error of a text that cannot be read as a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct YamlFault {
    /// The place in the text.
    pub at: Position,
    /// The fault, a clause.
    pub reason: String,
    /// The remedy, a clause.
    pub remedy: String,
}

impl YamlFault {
    pub(super) fn new(at: Position, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            at,
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    /// A fault of YAML's own grammar.
    pub(super) fn syntax(at: Position, reason: impl std::fmt::Display) -> Self {
        let remedy = "mend the YAML there (indentation, quotes and brackets are the usual causes)";
        Self::new(at, format!("this is not YAML: {reason}"), remedy)
    }
}

/// A fault of the text as a whole.
pub(super) fn unreadable(text: &str) -> Option<YamlFault> {
    if text.len() > MAX_BYTES {
        return Some(YamlFault::new(
            Position::default(),
            format!("the file is larger than {} MiB", MAX_BYTES >> 20),
            "split it",
        ));
    }
    let control =
        |byte: u8| (byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0x7f;
    let offset = text.bytes().position(control)?;
    Some(YamlFault::new(
        Position::default().end_of(text.get(..offset)?),
        "control characters are not allowed",
        "remove it, or write it as an escape in double quotes",
    ))
}
