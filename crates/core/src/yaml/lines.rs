//! The lines of a text that is changed, and the comments in them.

use std::ops::Range;

/// A text by its lines.
#[derive(Clone, Copy)]
pub(super) struct SourceLines<'a>(pub(super) &'a str);

impl<'a> SourceLines<'a> {
    pub(super) fn slice(self, range: Range<usize>) -> &'a str {
        self.0.get(range).unwrap_or_default()
    }

    pub(super) fn rest(self, offset: usize) -> &'a str {
        self.slice(offset..self.0.len())
    }

    /// The beginning of the line of a place.
    pub(super) fn start(self, offset: usize) -> usize {
        let before = self.slice(0..offset);
        before.rfind('\n').map_or(0, |at| at + 1)
    }

    /// The end of the line in which something ends; `None` if more than a comment follows it there.
    pub(super) fn end(self, offset: usize) -> Option<usize> {
        let line = self.rest(offset).split_inclusive('\n').next();
        let line = line.unwrap_or_default();
        let behind = line.strip_prefix(':').unwrap_or(line);
        let comment = behind.trim_start();
        let is_comment = comment.starts_with('#') && comment.len() < behind.len();
        (comment.is_empty() || is_comment).then_some(offset + line.len())
    }

    /// The line break of the text.
    pub(super) fn line_break(self) -> &'static str {
        let first = self.0.split_inclusive('\n').next().unwrap_or_default();
        if first.ends_with("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// The comments in some lines, each in a line of its own. `scalars` are the places where a `#` is text.
    pub(super) fn comments(
        self,
        lines: Range<usize>,
        indent: &str,
        scalars: &[Range<usize>],
    ) -> String {
        let mut out = String::new();
        let mut offset = lines.start;
        for line in self.slice(lines).split_inclusive('\n') {
            let mut marks = line.match_indices('#').filter(|(at, _)| {
                let is_apart = *at == 0 || line[..*at].ends_with(char::is_whitespace);
                is_apart && !scalars.iter().any(|span| span.contains(&(offset + at)))
            });
            if let Some((at, _)) = marks.next() {
                let is_whole = line[..at].trim().is_empty();
                out.push_str(if is_whole { &line[..at] } else { indent });
                out.push_str(&line[at..]);
            }
            offset += line.len();
        }
        out
    }
}
