//! A report for programs. Fields are only ever added.

use serde_json::{Value, json};

use super::{FindingsReport, ReportEntry, UnreadInput, Unreadable, severity};
use crate::policy::Mode;
use crate::text::is_obeyed;

/// The report as indented JSON, ended by a line break.
pub fn render(report: &FindingsReport) -> String {
    let document = json!({
        "findings": report.entries.iter().map(finding).collect::<Vec<_>>(),
        "unread": report.unread.iter().map(unread).collect::<Vec<_>>(),
        "remarks": report.remarks.iter().map(unread).collect::<Vec<_>>(),
        "summary": {
            "checked": report.checked,
            "denied": report.denied,
            // Programs read these names, so they stay whatever the fields are called here.
            "passedOver": report.others,
            "filesPassedOver": report.unrelated,
            "errors": report.count(Mode::Enforce),
            "warnings": report.count(Mode::Warn),
            "notes": report.count(Mode::Audit),
        },
    });
    pretty(&document)
}

/// Indented JSON, ended by a line break.
pub fn pretty(value: &Value) -> String {
    harmless(&format!("{value:#}\n"))
}

/// Escapes what a terminal would obey instead of showing it: JSON need not escape what turns text around.
pub fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_obeyed(char) && char != '\n' {
            shown.extend(format!("\\u{:04x}", u32::from(char)).chars());
        } else {
            shown.push(char);
        }
    }
    shown
}

fn finding(entry: &ReportEntry) -> Value {
    let ReportEntry {
        object,
        finding,
        span,
        ..
    } = entry;
    let decided = finding.decided.as_ref();
    let exemption = decided.and_then(|decided| decided.exemption.as_ref());
    json!({
        "rule": finding.rule.to_string(),
        "name": crate::rules::find(finding.rule).map(|rule| rule.name),
        "level": severity(entry.mode),
        "mode": entry.mode.name(),
        "file": entry.file,
        "line": span.start.line,
        "column": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
        "written": entry.exact,
        "object": {
            "kind": object.kind.name(),
            "namespace": object.namespace,
            "name": object.name,
        },
        "path": finding.path.to_string(),
        "pointer": finding.path.pointer(),
        "value": finding.value,
        "problem": finding.problem,
        "why": finding.why,
        "fix": finding.fix,
        "policy": decided.map(|decided| &*decided.policy),
        "exemption": exemption.map(|exemption| json!({
            "reason": exemption.reason,
            "ticket": exemption.ticket,
            "expires": exemption.expires.to_string(),
        })),
    })
}

fn unread(unread: &UnreadInput) -> Value {
    match &unread.reason {
        Unreadable::File(reason) => json!({"file": unread.file, "reason": reason}),
        Unreadable::Content(fault) => json!({
            "file": unread.file,
            "line": fault.at.line,
            "column": fault.at.column,
            "reason": fault.reason,
            "remedy": fault.remedy,
        }),
    }
}
