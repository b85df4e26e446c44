//! Syntax that kubectl refuses although YAML allows it: directives, text next to a separator, tabs
//! that begin a line, anchors with other characters than letters, digits, `-` and `_`.
//!
//! (go-yaml v2 and the splitter of documents in apimachinery, `util/yaml`; confirmed with both.)

use super::fault::YamlFault;
use super::position::Position;

/// A fault in what stands between two documents, of which `text` is all that is read and `gap` the
/// stretch in it; `begin` is where the text begins in its file.
pub(super) fn between(
    begin: Position,
    text: &str,
    gap: std::ops::Range<usize>,
) -> Option<YamlFault> {
    let mut offset = gap.start;
    for line in text.get(gap)?.split_inclusive('\n') {
        let at = || begin.end_of(text.get(..offset).unwrap_or_default());
        if line.starts_with('%') {
            let reason = "kubectl reads no YAML directives (%)";
            return Some(YamlFault::new(at(), reason, "remove the line"));
        }
        offset += line.len();
    }
    None
}

/// A separator with other text on its line, which begins at `offset`.
pub(super) fn separator(begin: Position, text: &str, offset: usize) -> Option<YamlFault> {
    let line = text.get(offset..)?.lines().next()?;
    let beside = line.strip_prefix("---")?.trim();
    if beside.is_empty() || beside.starts_with('#') {
        return None;
    }
    let at = begin.end_of(text.get(..offset)?);
    let reason = "kubectl takes nothing beside the separator --- but a comment";
    Some(YamlFault::new(
        at,
        reason,
        "begin the document in a line of its own",
    ))
}

/// The first line in `part` of the text that begins with a tab, unless it begins inside of one of
/// `covered`: texts of several lines, and braces and brackets.
pub(super) fn tab(
    begin: Position,
    text: &str,
    part: std::ops::Range<usize>,
    covered: &[std::ops::Range<usize>],
) -> Option<YamlFault> {
    let first = (part.start == 0 && text.starts_with('\t')).then_some(0);
    let start = part.start;
    let slice = text.get(part)?;
    let later = slice.match_indices("\n\t").map(|(at, _)| start + at + 1);
    // Both in their order and each looked at once: a text can have a hundred thousand of each.
    let mut covered: Vec<_> = covered.iter().collect();
    covered.sort_unstable_by_key(|range| range.start);
    let mut covered = covered.into_iter().peekable();
    let mut end = 0;
    let offset = first.into_iter().chain(later).find(|at| {
        while let Some(range) = covered.next_if(|range| range.start <= *at) {
            end = end.max(range.end);
        }
        *at >= end
    })?;
    let reason = "kubectl takes no line that begins with a tab";
    let at = begin.end_of(text.get(..offset)?);
    Some(YamlFault::new(at, reason, "indent with blanks"))
}

/// The fault of an anchor's name, if it has one.
pub(super) fn anchor(at: Position, name: &str) -> Option<YamlFault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.chars().all(plain) {
        return None;
    }
    let reason = format!(
        "kubectl takes no anchor called {}",
        crate::text::shown_text(name)
    );
    Some(YamlFault::new(
        at,
        reason,
        "use letters, digits, - and _ only",
    ))
}
