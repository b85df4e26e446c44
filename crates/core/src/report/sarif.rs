//! A report as SARIF 2.1.0 (OASIS), which code scanning services take.

use serde_json::{Value, json};

use super::json::pretty;
use super::page::WITHOUT;
use super::{FindingsReport, ReportEntry, UnreadInput, Unreadable, severity};
use crate::rule_page;
use crate::rules::RULES;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The report as one SARIF run, ended by a line break.
pub fn render(report: &FindingsReport) -> String {
    let rules = RULES.iter().map(|rule| {
        json!({
            "id": rule.id.to_string(),
            "name": rule.name,
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": rule_page::what(rule.page)},
            "help": {"text": format!("{} {}", rule.why, rule_page::text(rule.page, WITHOUT))},
            // SARIF names the levels as this crate does. A rule has one there; each result has that of its own mode.
            "defaultConfiguration": {"level": severity(rule.usual_mode())},
        })
    });
    let unread = report.unread.iter().map(|one| notification("error", one));
    let remarks = report
        .remarks
        .iter()
        .map(|one| notification("warning", one));
    pretty(&json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "rayfit",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.collect::<Vec<_>>(),
            }},
            // Columns count characters here; SARIF also knows UTF-16 units.
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": report.unread.is_empty(),
                "toolExecutionNotifications": unread.chain(remarks).collect::<Vec<_>>(),
            }],
            "results": report.entries.iter().map(result).collect::<Vec<_>>(),
        }],
    }))
}

fn result(entry: &ReportEntry) -> Value {
    let finding = &entry.finding;
    let index = RULES.iter().position(|rule| rule.id == finding.rule);
    let mut result = json!({
        "ruleId": finding.rule.to_string(),
        "ruleIndex": index,
        "level": severity(entry.mode),
        "message": {"text": format!(
            "{}: {}. {} {}",
            finding.path, finding.problem, finding.why, finding.fix
        )},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": artifact(&entry.file),
                "region": {
                    "startLine": entry.span.start.line,
                    "startColumn": entry.span.start.column,
                    "endLine": entry.span.end.line,
                    "endColumn": entry.span.end.column,
                    "snippet": {"text": entry.line},
                },
            },
            "logicalLocations": [{
                "fullyQualifiedName": format!("{} {}", entry.object, finding.path),
            }],
        }],
    });
    if let Some(decided) = &finding.decided {
        result["properties"] = json!({"policy": &*decided.policy});
        if decided.exemption.is_some() {
            let justification = decided.to_string();
            result["suppressions"] = json!([{"kind": "external", "justification": justification}]);
        }
    }
    result
}

/// The location of a file.
fn artifact(file: &str) -> Value {
    // A relative file stays relative, so that services find it in the repository.
    let relative = file.strip_prefix("./").unwrap_or(file);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encoded = relative.bytes().map(|byte| match byte {
        // Paths of Windows have slashes in URIs too.
        b'\\' => "/".to_owned(),
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    json!({"uri": encoded.collect::<String>()})
}

fn notification(level: &str, unread: &UnreadInput) -> Value {
    let mut location = json!({"artifactLocation": artifact(&unread.file)});
    if let Unreadable::Content(fault) = &unread.reason {
        location["region"] = json!({
            "startLine": fault.at.line,
            "startColumn": fault.at.column,
        });
    }
    json!({
        "level": level,
        "message": {"text": unread.to_string()},
        "locations": [{"physicalLocation": location}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_becomes_a_relative_reference() {
        assert_eq!(artifact("./a b/ü.yaml")["uri"], "a%20b/%C3%BC.yaml");
        assert_eq!(artifact("<stdin>")["uri"], "%3Cstdin%3E");
    }
}
