//! The changes that defaults make, as a unified diff.

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

use crate::defaults::AppliedValue;

const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// The differences between two texts, and which defaults made them; empty if there are none.
pub fn render(file: &str, before: &str, after: &str, applied: &[AppliedValue]) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiff::from_lines(before, after);
    let mut out: Vec<String> = applied.iter().map(|one| format!("# {one}\n")).collect();
    out.push(format!("{REMOVED}--- {file}{REMOVED:#}\n"));
    out.push(format!("{ADDED}+++ {file} (as stored){ADDED:#}\n"));
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        out.push(format!("{PLACE}{}{PLACE:#}\n", hunk.header()));
        out.extend(hunk.iter_changes().map(|change| {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', REMOVED),
                ChangeTag::Insert => ('+', ADDED),
                ChangeTag::Equal => (' ', Style::new()),
            };
            // A colour that ended after the line break would reach into the next line.
            let text = change.value().trim_end_matches('\n');
            format!("{style}{sign}{text}{style:#}\n")
        }));
    }
    out.concat()
}
