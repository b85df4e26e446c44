//! A report for a terminal, like a compiler's: place, rule and problem; the line with the offending
//! value underlined; why it matters and how to fix it.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::wrap::wrapped;
use super::{FindingsReport, ReportEntry, counted, severity};
use crate::policy::Mode;
use crate::text::is_obeyed;

const WIDTH: usize = 100;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The findings and, on the last line, a summary.
pub fn render(report: &FindingsReport) -> String {
    let mut out = String::new();
    for entry in &report.entries {
        out.push_str(&finding(entry));
        out.push('\n');
    }
    out.push_str(&summary(report));
    out.push('\n');
    out
}

const fn style(mode: Mode) -> Style {
    match mode {
        Mode::Enforce => AnsiColor::Red.on_default().bold(),
        Mode::Warn => AnsiColor::Yellow.on_default().bold(),
        Mode::Audit | Mode::Off => AnsiColor::Cyan.on_default().bold(),
    }
}

fn finding(entry: &ReportEntry) -> String {
    let ReportEntry {
        file,
        finding,
        span,
        ..
    } = entry;
    let (line, column) = (span.start.line, span.start.column);
    let (level, style) = (severity(entry.mode), style(entry.mode));
    let mut out = format!(
        "{file}:{line}:{column}: {style}{rule} {level}{style:#}  {BOLD}{path}{BOLD:#}: {problem}\n",
        rule = finding.rule,
        file = harmless(file),
        path = harmless(&finding.path.to_string()),
        problem = harmless(&finding.problem),
    );
    // Below the number of the line, which is as wide.
    let margin = " ".repeat(line.to_string().len());
    let (shown, indent, length) = clipped(entry);
    let (pad, carets) = (" ".repeat(indent), "^".repeat(length));
    let remark = if entry.exact {
        ""
    } else {
        " absent; it belongs in here"
    };
    let _ = writeln!(
        out,
        "{margin} {DIM}|{DIM:#}\n{DIM}{line} |{DIM:#} {shown}\n{margin} {DIM}|{DIM:#} \
         {pad}{style}{carets}{remark}{style:#}"
    );
    let decided = finding.decided.as_ref().map(ToString::to_string);
    let mode = decided.map(|decided| format!("{} {decided}", entry.mode));
    for (label, text) in [
        ("why", Some(&finding.why)),
        ("fix", Some(&finding.fix)),
        ("mode", mode.as_ref()),
    ] {
        let Some(text) = text else { continue };
        let wrapped = wrapped(&format!("{margin} = {label}: "), &harmless(text), WIDTH);
        out.push_str(&wrapped);
        out.push('\n');
    }
    out
}

/// The text without what a terminal would obey.
fn harmless(text: &str) -> String {
    text.replace(is_obeyed, "\u{fffd}")
}

/// The longest part of a line that is shown. JSON on one line can be megabytes long.
const SHOWN: usize = 160;

/// The part of the line that is shown, the columns before the underlined part, and its length.
fn clipped(entry: &ReportEntry) -> (String, usize, usize) {
    let ReportEntry { line, omitted, .. } = entry;
    let chars: Vec<char> = line
        .chars()
        .map(|c| if is_obeyed(c) { ' ' } else { c })
        .collect();
    let index = |column: usize| column.saturating_sub(1 + omitted).min(chars.len());
    let start = index(entry.span.start.column);
    let end = if entry.span.end.line == entry.span.start.line {
        index(entry.span.end.column)
    } else {
        chars.len()
    };
    let from = if chars.len() > SHOWN {
        // Some characters before the mark show where in the line it is.
        start.saturating_sub(40)
    } else {
        0
    };
    let shown: String = chars.iter().skip(from).take(SHOWN).collect();
    let length = end.saturating_sub(start).clamp(1, SHOWN - 40);
    let mark = if from + omitted > 0 { "…" } else { "" };
    (
        format!("{mark}{shown}"),
        start - from + mark.chars().count(),
        length,
    )
}

/// `3 Ray objects checked, 1 denied: 4 errors, 2 warnings, 1 note; 2 other objects skipped`
fn summary(report: &FindingsReport) -> String {
    let levels = || {
        let modes = [Mode::Enforce, Mode::Warn, Mode::Audit].map(|mode| (mode, report.count(mode)));
        let counts = modes.into_iter().filter(|(_, count)| *count > 0);
        let counts = counts.map(|(mode, count)| counted(count, severity(mode)));
        counts.collect::<Vec<_>>().join(", ")
    };
    let denied = style(Mode::Enforce);
    let outcome = match report.denied {
        0 if report.checked == 0 => String::new(),
        0 if report.entries.is_empty() => ", nothing found".to_owned(),
        0 => format!(", none denied: {}", levels()),
        count => format!(", {denied}{count} denied{denied:#}: {}", levels()),
    };
    let mut parts = vec![format!(
        "{} checked{outcome}",
        counted(report.checked, "Ray object")
    )];
    if report.others > 0 {
        let others = counted(report.others, "other object");
        parts.push(format!("{others} skipped"));
    }
    if report.unrelated > 0 {
        let unrelated = counted(report.unrelated, "file");
        parts.push(format!(
            "{unrelated} passed over that cannot be read and name no Ray kind"
        ));
    }
    if !report.unread.is_empty() {
        let unread = counted(report.unread.len(), "input");
        parts.push(format!("{denied}{unread} could not be read{denied:#}"));
    }
    parts.join("; ")
}
