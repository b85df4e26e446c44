//! The changes that defaults and fixes make, as a unified diff.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// The differences between two texts of these names, below remarks on them; empty if there are none.
pub fn render(names: [&str; 2], before: &str, after: &str, remarks: &[impl Display]) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiff::from_lines(before, after);
    let [old, new] = names;
    let mut out: Vec<String> = remarks.iter().map(|one| format!("# {one}\n")).collect();
    out.push(format!("{REMOVED}--- {old}{REMOVED:#}\n"));
    out.push(format!("{ADDED}+++ {new}{ADDED:#}\n"));
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
            let end = if change.missing_newline() {
                "\\ No newline at end of file\n"
            } else {
                ""
            };
            format!("{style}{sign}{text}{style:#}\n{end}")
        }));
    }
    out.concat()
}
