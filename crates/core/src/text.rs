//! Text from users and other programs as messages show it: short, quoted, on one line.

use crate::json::Json;

/// The longest value that is shown in full. Pod templates can contain megabytes.
const SHOWN: usize = 64;

/// A value as it is shown in messages: short, on one line.
pub fn shown<'a>(value: impl Into<Json<'a>>) -> String {
    match value.into() {
        Json::String(text) => shown_text(text),
        Json::Array(items) => format!("a list of {}", items.len()),
        Json::Object(map) => format!("an object of {} keys", map.len()),
        other => other.to_string(),
    }
}

/// A text as it is shown in messages: quoted, escaped, cut after 64 characters.
pub fn shown_text(text: &str) -> String {
    if text.chars().nth(SHOWN).is_none() {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{:?}", head + "…")
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    // Formatting each byte by itself would take most of the time of a long simulation.
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    text
}

/// Checks whether terminals and pages obey a character instead of showing it: control characters, those that
/// end a line, and those that turn the direction of text.
pub fn is_obeyed(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        )
        || matches!(char, '\u{2066}'..='\u{2069}')
}

/// Text of a stranger: from a GCS, an annotation, a snapshot, the name of a file. What would be obeyed
/// is shown as an escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignText<T>(pub T);

impl<T: AsRef<str>> std::fmt::Display for ForeignText<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        self.0.as_ref().chars().try_for_each(|char| match char {
            char if is_obeyed(char) => write!(f, "{}", char.escape_debug()),
            char => f.write_char(char),
        })
    }
}

/// The candidate most similar to `typo`, if one is similar enough.
pub fn nearest<'a>(typo: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Case is no difference, and texts of strangers may be long.
    let bounded = |text: &str| text.chars().take(SHOWN).collect::<String>().to_lowercase();
    let limit = 1 + typo.chars().count() / 4;
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::levenshtein(&bounded(typo), &bounded(candidate));
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The first names of so many, and the number of the others.
pub fn first_of<T: AsRef<str>>(names: &[T], count: u64) -> String {
    let first: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let first = first.join(", ");
    match count.saturating_sub(names.len() as u64) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The error of a text that is not what it should be: a sentence with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misread(pub String);

/// Lets types that people read as text be that text in JSON, too, and in its schema, so that it is made in one place: their
/// `Display`.
macro_rules! text_in_json {
    ($($type:ty),+ $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    )+};
}

pub(crate) use text_in_json;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_and_nothing_far_off() {
        let keys = ["max-cpu", "max-memory", "resize-timeout"];
        assert_eq!(nearest("max-cpus", keys), Some("max-cpu"));
        assert_eq!(nearest("maxMemory", keys), Some("max-memory"));
        assert_eq!(nearest("colour", keys), None);
    }

    #[test]
    fn nothing_of_a_stranger_is_obeyed() {
        let text = "ü a\u{1b}[2J\nb\u{202e}c\u{2028}\u{7}";
        let shown = ForeignText(text).to_string();
        assert_eq!(shown, r"ü a\u{1b}[2J\nb\u{202e}c\u{2028}\u{7}");
        assert!(!shown.chars().any(is_obeyed));
    }

    #[test]
    fn long_values_are_cut() {
        assert!(shown_text(&"x".repeat(1000)).len() < 80);
        assert_eq!(shown(&serde_json::json!({"a": 1})), "an object of 1 keys");
    }
}
