//! Quoted texts that continue at the column of their key, or before it: YAML forbids that, and
//! kubectl reads it. In: a text. Out: a copy with these lines indented, and the way back from it.

use granit_parser::{ErrorKind, Parser, ScanError};

use super::position::Position;

/// Most bytes that are parsed in search of such lines: each line needs one more look at the text.
const MAX_PARSED: usize = 16 << 20;

/// Most blanks that are put before a line.
const MAX_ADDED: usize = 1024;

/// A copy of a text in which such lines are indented. Blanks there are no part of the quoted text.
pub(super) struct IndentedCopy {
    pub(super) text: String,
    /// The line, the end of what was added to it, and how much was added up to there.
    added: Vec<(usize, usize, usize)>,
}

impl IndentedCopy {
    /// `None` if there is no such line.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut copy = Self {
            text: text.to_owned(),
            added: Vec::new(),
        };
        for _ in 0..MAX_PARSED / text.len().max(1) {
            let fault: Option<ScanError> = Parser::new_from_str(&copy.text).find_map(Result::err);
            let is_indent =
                |fault: &ScanError| matches!(fault.kind(), ErrorKind::InvalidQuotedScalarIndent);
            let Some(fault) = fault.filter(is_indent) else {
                break;
            };
            let (line, offset) = (
                fault.marker().line(),
                fault.marker().byte_offset().unwrap_or_default(),
            );
            if copy.added.last().is_some_and(|last| last.0 >= line) {
                break;
            }
            // Whatever is above begins further right than the block, or holds the quote that does.
            let preceding = copy.text.get(..offset).unwrap_or_default();
            let above = preceding.trim_end().lines().next_back().unwrap_or_default();
            let count = above.chars().count().min(MAX_ADDED);
            let sum = copy.added.last().map_or(0, |last| last.2) + count;
            copy.text.insert_str(offset, &" ".repeat(count));
            copy.added.push((line, offset + count, sum));
        }
        (!copy.added.is_empty()).then_some(copy)
    }

    /// The place in the text itself of a point of the copy.
    pub(super) fn position(&self, at: Position) -> Position {
        let passed = self.added.partition_point(|added| added.1 <= at.offset);
        let Some(&(line, _, sum)) = passed.checked_sub(1).and_then(|last| self.added.get(last))
        else {
            return at;
        };
        let earlier = passed.checked_sub(2).and_then(|last| self.added.get(last));
        let count = sum - earlier.map_or(0, |earlier| earlier.2);
        Position {
            offset: at.offset - sum,
            line: at.line,
            column: at.column - if line == at.line { count } else { 0 },
        }
    }
}
