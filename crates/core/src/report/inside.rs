//! Positions inside a string that is itself JSON (an annotation), as far as they can be found.

use crate::path::{FieldPath, Segment};
use crate::yaml::Span;

/// The position of the last key of `path` inside the string at `span` of `source`; that of the
/// nearest key before it if it is absent; the whole string if none is found.
///
/// Keys are searched for one after the other, as they are nested.
pub(super) fn narrowed(source: &str, span: Span, path: &FieldPath) -> Span {
    let mut narrowest = span;
    let mut from = span.start.offset;
    for segment in path.segments() {
        let Segment::Inside(key) = segment else {
            continue;
        };
        let Some(text) = source.get(from..span.end.offset) else {
            break;
        };
        // A search needs no JSON parser that knows YAML's own escapes, and works on invalid JSON
        // too.
        let Some(at) = quoted(text, key) else {
            break;
        };
        let head = source.get(span.start.offset..from + at).unwrap_or_default();
        let start = span.start.end_of(head);
        let end = start.end_of(key);
        narrowest = Span { start, end };
        from = end.offset;
    }
    narrowest
}

/// The position of `key` in quotes, which YAML may have escaped.
fn quoted(text: &str, key: &str) -> Option<usize> {
    text.match_indices(key).map(|(at, _)| at).find(|at| {
        let head = text.get(..*at).unwrap_or_default();
        let tail = text.get(at + key.len()..).unwrap_or_default();
        head.ends_with('"') && tail.trim_start_matches('\\').starts_with('"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part that is underlined for `groups.<group>.<key>` in an annotation that is written so.
    fn underlined(written: &str, inside: &[&str]) -> (String, usize, usize) {
        let source = format!("metadata:\n  annotations:\n    ray.io/ippr: {written}\n");
        let document = crate::yaml::read(&source).remove(0).unwrap();
        let path = FieldPath::annotation("ray.io/ippr");
        let path = inside.iter().fold(path, |path, key| path.inside(*key));
        let span = narrowed(&source, document.place(&path.pointer()).span, &path);
        let text = source[span.start.offset..span.end.offset].to_owned();
        (text, span.start.line, span.start.column)
    }

    #[test]
    fn keys_are_found_however_the_text_is_quoted() {
        let path = ["groups", "cpu", "max-cpu"];
        let cpu = |line, column| ("max-cpu".to_owned(), line, column);
        let single = r#"'{"groups": {"gpu": {}, "cpu": {"max-cpu": "1"}}}'"#;
        assert_eq!(underlined(single, &path), cpu(3, 51));
        let double = r#""{\"groups\": {\"cpu\": {\"max-cpu\": \"1\"}}}""#;
        assert_eq!(underlined(double, &path), cpu(3, 45));
        let block = "|\n      {\"groups\": {\n        \"cpu\": {\n          \"max-cpu\": \"1\"}}}";
        assert_eq!(underlined(block, &path), cpu(6, 12));
    }

    #[test]
    fn the_nearest_key_stands_for_an_absent_one() {
        let written = r#"'{"groups": {"cpu": {}}}'"#;
        let found = |path| underlined(written, path).0;
        assert_eq!(found(&["groups", "cpu", "max-cpu"]), "cpu");
        assert_eq!(found(&["grups"]), written);
        assert_eq!(found(&[]), written);
    }
}
