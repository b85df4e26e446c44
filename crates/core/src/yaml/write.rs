//! YAML that every reader takes for the same value: block style as kubectl prints it, quotes
//! wherever a YAML 1.1 reader could take a text for something else.

use crate::text::is_obeyed;
use serde_json::{Map, Value};

use super::scalar::{Scalar, TagType, resolve};

/// One YAML document, ended by a line break. Keys keep their order.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0, ""),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
        scalar => {
            inline(&mut out, scalar, 2);
            out.push('\n');
        }
    }
    out
}

/// `first` replaces the indentation of the first entry, which may stand behind a `- `.
fn mapping(out: &mut String, map: &Map<String, Value>, indent: usize, first: &str) {
    for (position, (key, value)) in map.iter().enumerate() {
        if position == 0 && !first.is_empty() {
            out.push_str(first);
        } else {
            pad(out, indent);
        }
        out.push_str(&word(key));
        out.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                mapping(out, map, indent + 2, "");
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                // As kubectl prints them, lists stand no deeper than their keys.
                sequence(out, items, indent);
            }
            scalar => {
                out.push(' ');
                inline(out, scalar, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn sequence(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(out, indent);
        match item {
            Value::Object(map) if !map.is_empty() => mapping(out, map, indent + 2, "- "),
            Value::Array(items) if !items.is_empty() => {
                out.push_str("-\n");
                sequence(out, items, indent + 2);
            }
            scalar => {
                out.push_str("- ");
                inline(out, scalar, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// The text behind a `key: ` or `- `; `indent` is that of lines below it.
fn inline(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) => {
            let Some(header) = block_header(text) else {
                out.push_str(&word(text));
                return;
            };
            out.push_str(header);
            for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                out.push('\n');
                if !line.is_empty() {
                    pad(out, indent);
                    out.push_str(line);
                }
            }
        }
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        other => out.push_str(&other.to_string()),
    }
}

/// The header under which a text of several lines can stand as it is.
fn block_header(text: &str) -> Option<&'static str> {
    let printable = |c: char| c == '\n' || c == '\t' || is_printable(c);
    if !text.contains('\n') || text.starts_with([' ', '\t', '\n']) || !text.chars().all(printable) {
        return None;
    }
    let body = text.trim_end_matches('\n');
    if body
        .lines()
        .any(|line| !line.is_empty() && line.trim().is_empty())
    {
        return None; // lines of blanks alone are easily lost
    }
    Some(match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    })
}

/// A text on one line: bare if nothing else can be read into it, else in quotes.
pub(super) fn word(text: &str) -> String {
    let first = text.strip_prefix('-').unwrap_or(text);
    let begins = first.starts_with(|c: char| c.is_ascii_alphanumeric() || "/_$(.".contains(c))
        || (text.starts_with("--") && !text.starts_with("---"));
    let inside = |c: char| c.is_alphanumeric() || "-_./+=@$%()*,;!?<>~^&|'\"\\[]{}:# ".contains(c);
    let is_bare = begins
        && text.chars().all(inside)
        && !text.starts_with("...")
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #");
    // Readers of YAML 1.1 take yes, no, on and off for booleans and 010 for eight; such words need quotes.
    if is_bare && matches!(resolve(text, TagType::Any), Some(Scalar::Text(_))) {
        return text.to_owned();
    }
    if text.chars().all(is_printable) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    escaped(text)
}

fn is_printable(c: char) -> bool {
    !is_obeyed(c) && !matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// A text in double quotes, which YAML and JSON read alike.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            // Characters that are not printable lie below U+10000.
            c => out.extend(format!("\\u{:04x}", u32::from(c)).chars()),
        }
    }
    out.push('"');
    out
}
