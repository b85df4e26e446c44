//! A report as GitHub Actions' workflow commands, which become annotations of a pull request.

use super::{FindingsReport, ReportEntry, UnreadInput, Unreadable};
use crate::policy::Mode;

/// One line per finding, per remark and per input that could not be read.
pub fn render(report: &FindingsReport) -> String {
    let findings = report.entries.iter().map(finding);
    let remarks = report.remarks.iter().map(|one| unread("warning", one));
    let unread = report.unread.iter().map(|one| unread("error", one));
    findings.chain(remarks).chain(unread).collect()
}

fn finding(entry: &ReportEntry) -> String {
    let ReportEntry {
        file,
        finding,
        span,
        ..
    } = entry;
    let command = match entry.mode {
        Mode::Enforce => "error",
        Mode::Warn => "warning",
        Mode::Audit | Mode::Off => "notice",
    };
    let name = crate::rules::find(finding.rule).map_or("", |rule| rule.name);
    // A line names the policy that decided the mode of the finding, if one did.
    let decided = finding.decided.as_ref();
    let decided = decided.map_or_else(String::new, |decided| {
        format!("\n({} {decided})", entry.mode)
    });
    format!(
        "::{command} file={file},line={line},endLine={end},col={column},endColumn={end_column},\
         title={title}::{message}\n",
        file = property(file),
        line = span.start.line,
        end = span.end.line,
        column = span.start.column,
        end_column = span.end.column,
        title = property(&format!("{} {name}", finding.rule)),
        message = data(&format!(
            "{}: {}. {}\n{}{decided}",
            finding.path, finding.problem, finding.why, finding.fix
        )),
    )
}

fn unread(command: &str, unread: &UnreadInput) -> String {
    let file = property(&unread.file);
    match &unread.reason {
        Unreadable::File(reason) => format!("::{command} file={file}::{}\n", data(reason)),
        Unreadable::Content(fault) => format!(
            "::{command} file={file},line={},col={}::{}\n",
            fault.at.line,
            fault.at.column,
            data(&fault.to_string())
        ),
    }
}

/// The text after the second `::`, escaped.
fn data(text: &str) -> String {
    // The percent sign comes first, because it begins what the others become.
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property, escaped.
fn property(text: &str) -> String {
    // The runner ends a property at a comma, and the properties at a colon.
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_or_a_property_is_escaped() {
        assert_eq!(data("50%\r\n::error::x"), "50%25%0D%0A::error::x");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }
}
