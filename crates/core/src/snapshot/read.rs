//! Reading snapshots from text: one JSON or YAML object, or one JSON object per line.

use std::fmt::Display;

use serde_json::Value;

use crate::text::{Misread, is_obeyed, shown_text};

use super::{API_VERSION, KIND, Snapshot};

/// Reads every snapshot in a text: JSON lines (each line is an object of its own), or one document.
pub fn read_all(text: &str) -> Vec<Result<Snapshot, Misread>> {
    let syntax = |line: usize, reason: &dyn Display| {
        Misread(format!(
            "line {line}: it is neither JSON nor YAML: {reason}"
        ))
    };
    let json = |text: &str, line| serde_json::from_str(text).map_err(|error| syntax(line, &error));
    let lines = || {
        (1..)
            .zip(text.lines().map(str::trim))
            .filter(|(_, line)| !line.is_empty())
    };
    let first = lines().next().map_or("", |(_, line)| line);
    // One object over several lines is told from JSON lines by its first line, which does not end it.
    let has_more = lines().nth(1).is_some();
    if has_more && first.starts_with('{') && first.ends_with('}') {
        return lines()
            .map(|(number, line)| json(line, number).and_then(|value| form(value, number)))
            .collect();
    }
    let document = if first.starts_with('{') {
        json(text, 1)
    } else {
        serde_saphyr::from_str(text).map_err(|error| syntax(1, &error))
    };
    vec![document.and_then(|value| form(value, 1))]
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

fn form(value: Value, line: usize) -> Result<Snapshot, Misread> {
    let fault = |path: &str, reason: String| {
        Misread(match path {
            "." => format!("line {line}: {reason}"),
            path => format!("line {line}: at {path}: {reason}"),
        })
    };
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or("nothing");
    let (version, kind) = (text("apiVersion"), text("kind"));
    if (version, kind) != (API_VERSION, KIND) {
        let found = shown_text(&format!("{version} {kind}"));
        return Err(Misread(format!(
            "line {line}: {found} is not a snapshot: write apiVersion: {API_VERSION}, kind: Snapshot \
             (examples/snapshot.yaml is one)"
        )));
    }
    // Snapshots come from other people's clusters, and their names are shown in terminals and log files.
    if let Some(name) = obeyed(&value, "") {
        let reason = format!(
            "{} has control characters or ones that turn text around: remove them",
            shown_text(name)
        );
        return Err(fault(".", reason));
    }
    let snapshot: Snapshot = serde_path_to_error::deserialize(value)
        .map_err(|error| fault(&error.path().to_string(), error.inner().to_string()))?;
    if snapshot.seconds().is_none() {
        let reason = format!(
            "{:?} is not an RFC 3339 time such as 2026-01-31T12:00:00Z",
            snapshot.time
        );
        return Err(fault("time", reason));
    }
    // Without a spec there are no groups, and every plan would be empty without a reason.
    if snapshot.ray_cluster.spec.is_none() {
        let reason = "there is no RayCluster with a spec".to_owned();
        return Err(fault("rayCluster.spec", reason));
    }
    Ok(snapshot)
}
