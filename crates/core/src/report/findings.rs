//! The result of a check of manifests.

use super::inside;
use crate::finding::Finding;
use crate::judge::Verdict;
use crate::objects::Identity;
use crate::policy::Mode;
use crate::text::ForeignText;
use crate::yaml::{Document, Position, Span, YamlFault, template_hint};

/// The result of a check of manifests.
#[derive(Debug, Default)]
pub struct FindingsReport {
    /// The findings, in the order of the files, their objects and the places in these.
    pub entries: Vec<ReportEntry>,
    /// The input that could not be read, in the order of the files.
    pub unread: Vec<UnreadInput>,
    /// Places in checked documents that kubectl sends otherwise than they look.
    pub remarks: Vec<UnreadInput>,
    /// Ray objects that were checked.
    pub checked: usize,
    /// Checked objects that admission would deny.
    pub denied: usize,
    /// Objects that are not Ray objects and were skipped.
    pub others: usize,
    /// Files of folders that could not be read, and that name no kind of Ray objects.
    pub unrelated: usize,
}

/// A finding and its position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportEntry {
    /// The file as it was named, or `<stdin>`.
    pub file: String,
    /// The object.
    pub object: Identity,
    /// The mode of the finding: Enforce, Warn or Audit.
    pub mode: Mode,
    /// The finding.
    pub finding: Finding,
    /// The span to underline.
    pub span: Span,
    /// True if the value itself is in the file; false if it is absent or a default, and `span` is
    /// that of an ancestor.
    pub exact: bool,
    /// The line of the file in which the span begins, or the part of it around that: JSON on one line can be
    /// megabytes long and have thousands of findings.
    pub line: String,
    /// The number of characters of the line that are left out before that.
    pub omitted: usize,
}

/// Input that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{}: {reason}", ForeignText(file))]
pub struct UnreadInput {
    /// The file as it was named, or `<stdin>`.
    pub file: String,
    /// The reason.
    pub reason: Unreadable,
}

/// The reason for which input could not be read.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Unreadable {
    /// The file could not be opened or read; the text says why.
    File(String),
    /// It is not a manifest.
    #[display("line {} column {}: {}", _0.at.line, _0.at.column, _0)]
    Content(YamlFault),
}

/// The severity of a finding of a mode, as compilers name it. Findings of rules that are off are never reported.
pub const fn severity(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "error",
        Mode::Warn => "warning",
        Mode::Audit | Mode::Off => "note",
    }
}

impl FindingsReport {
    /// Adds the findings in the object at `pointer` of a document of `file`, whose whole text is
    /// `source`, in the order of their positions.
    pub fn add(
        &mut self,
        (file, source): (&str, &str),
        (document, pointer): (&Document, &str),
        object: &Identity,
        verdict: &Verdict,
    ) {
        let from = self.entries.len();
        self.checked += 1;
        self.denied += usize::from(!verdict.is_allowed());
        self.entries
            .extend(verdict.findings().map(|(mode, finding)| {
                let place = document.place(&format!("{pointer}{}", finding.path.pointer()));
                let span = inside::narrowed(source, place.span, &finding.path);
                let mut finding = finding.clone();
                let written = source.get(place.span.start.offset..place.span.end.offset);
                // In a command of a shell, ${X} is none of ours.
                let value = written.filter(|text| place.exact && !text.contains(' '));
                if let Some(hint) = value.and_then(template_hint) {
                    finding.fix = format!("None yet: {hint}.");
                }
                let (line, omitted) = line_around(source, span.start);
                ReportEntry {
                    file: file.to_owned(),
                    object: object.clone(),
                    mode,
                    finding,
                    span,
                    exact: place.exact,
                    line,
                    omitted,
                }
            }));
        // Findings come by rule, and people go through a file from top to bottom.
        if let Some(added) = self.entries.get_mut(from..) {
            added.sort_by_key(|entry| (entry.span.start, entry.finding.rule));
        }
    }

    /// Adds what kubectl reads otherwise than it looks in a file.
    pub fn remark(&mut self, file: &str, faults: Vec<YamlFault>) {
        self.remarks
            .extend(faults.into_iter().map(|fault| UnreadInput {
                file: file.to_owned(),
                reason: Unreadable::Content(fault),
            }));
    }

    /// The number of findings of a mode.
    pub fn count(&self, mode: Mode) -> usize {
        let of_mode = |entry: &&ReportEntry| entry.mode == mode;
        self.entries.iter().filter(of_mode).count()
    }
}

/// The bytes of a line that are kept on either side of a place.
const REACH: usize = 1024;

/// The line around a place of `source`, and the number of characters that are left out before it.
fn line_around(source: &str, at: Position) -> (String, usize) {
    let (head, tail) = source.split_at_checked(at.offset).unwrap_or((source, ""));
    // A cut inside a character would panic.
    let head = &head[head.floor_char_boundary(head.len().saturating_sub(REACH))..];
    let tail = &tail[..tail.floor_char_boundary(REACH)];
    let head = head.rsplit(['\n', '\r']).next().unwrap_or_default();
    let tail = tail.split(['\n', '\r']).next().unwrap_or_default();
    let omitted = at.column.saturating_sub(1 + head.chars().count());
    (format!("{head}{tail}"), omitted)
}

/// `1 object`, `2 objects`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}
