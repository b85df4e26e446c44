//! Reading snapshots from text: one JSON or YAML object, or one JSON object per line.

use serde_json::Value;

use crate::text::{is_obeyed, shown_text};

use super::{API_VERSION, KIND, Snapshot};

/// The reason why a text is not a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The text is neither JSON nor YAML.
    #[error("line {line}: it is neither JSON nor YAML: {reason}")]
    Syntax {
        /// The first line of the document, counted from 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// The text is something else, such as a RayCluster alone.
    #[error(
        "line {line}: {found} is not a snapshot: write apiVersion: {API_VERSION}, kind: Snapshot \
         (examples/snapshot.yaml is one)"
    )]
    Kind {
        /// The first line of the document, counted from 1.
        line: usize,
        /// A description of the text that was found.
        found: String,
    },
    /// A field of the snapshot has another form than it should.
    #[error("line {line}: {}{reason}", at(path))]
    Form {
        /// The first line of the document, counted from 1.
        line: usize,
        /// The path of the fault.
        path: String,
        /// The fault.
        reason: String,
    },
}

/// The path in words; nothing for the document itself, whose path is `.`.
fn at(path: &str) -> String {
    match path {
        "." => String::new(),
        path => format!("at {path}: "),
    }
}

/// Reads every snapshot in a text: JSON lines (each line is an object of its own), or one document.
pub fn read_all(text: &str) -> Vec<Result<Snapshot, SnapshotError>> {
    if is_json_lines(text) {
        let lines = text.lines().enumerate();
        return lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(index, line)| json(line, index + 1).and_then(|value| form(value, index + 1)))
            .collect();
    }
    vec![document(text).and_then(|value| form(value, 1))]
}

/// Whether the text has more than one line and the first one is a whole object.
fn is_json_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim();
    first.starts_with('{') && first.ends_with('}') && lines.next().is_some()
}

fn json(line: &str, number: usize) -> Result<Value, SnapshotError> {
    serde_json::from_str(line).map_err(|error| SnapshotError::Syntax {
        line: number,
        reason: error.to_string(),
    })
}

fn document(text: &str) -> Result<Value, SnapshotError> {
    if text.trim_start().starts_with('{') {
        return json(text, 1);
    }
    serde_saphyr::from_str(text).map_err(|error| SnapshotError::Syntax {
        line: 1,
        reason: error.to_string(),
    })
}

/// The first text in a value that would be obeyed where it is shown. Only arguments, environments,
/// annotations and messages may have several lines.
fn obeyed<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    let has_lines = ["args", "command", "value", "message", "annotations"].contains(&key);
    let is_bad = |text: &str, lines: bool| {
        text.contains(|char| is_obeyed(char) && !(lines && matches!(char, '\n' | '\r' | '\t')))
    };
    match value {
        Value::String(text) => Some(text.as_str()).filter(|text| is_bad(text, has_lines)),
        Value::Array(items) => items.iter().find_map(|item| obeyed(item, key)),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let inside = if key == "annotations" { key } else { name };
            let name = Some(name.as_str()).filter(|name| is_bad(name, false));
            name.or_else(|| obeyed(value, inside))
        }),
        _ => None,
    }
}

fn form(value: Value, line: usize) -> Result<Snapshot, SnapshotError> {
    let fault = |path: String, reason: String| SnapshotError::Form { line, path, reason };
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or("nothing");
    let (version, kind) = (text("apiVersion"), text("kind"));
    if (version, kind) != (API_VERSION, KIND) {
        let found = shown_text(&format!("{version} {kind}"));
        return Err(SnapshotError::Kind { line, found });
    }
    if let Some(name) = obeyed(&value, "") {
        let reason = format!(
            "{} has control characters or ones that turn text around: remove them",
            shown_text(name)
        );
        return Err(fault(".".to_owned(), reason));
    }
    let snapshot: Snapshot = serde_path_to_error::deserialize(value)
        .map_err(|error| fault(error.path().to_string(), error.inner().to_string()))?;
    if snapshot.seconds().is_none() {
        let reason = format!(
            "{:?} is not an RFC 3339 time such as 2026-01-31T12:00:00Z",
            snapshot.time
        );
        return Err(fault("time".to_owned(), reason));
    }
    if snapshot.ray_cluster.spec.is_none() {
        let reason = "there is no RayCluster with a spec".to_owned();
        return Err(fault("rayCluster.spec".to_owned(), reason));
    }
    Ok(snapshot)
}
