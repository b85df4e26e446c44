//! Points in a text, and stretches of it.

/// A point in a text. Lines and columns count from 1, columns in characters; the offset counts
/// bytes from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            offset: 0,
            line: 1,
            column: 1,
        }
    }
}

impl Position {
    /// The point behind `text` that begins here.
    pub(crate) fn end_of(self, text: &str) -> Self {
        let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
        let last = text.rsplit('\n').next().unwrap_or_default();
        let column = if breaks == 0 { self.column } else { 1 };
        Self {
            offset: self.offset + text.len(),
            line: self.line + breaks,
            column: column + last.chars().count(),
        }
    }
}

/// A stretch of a text, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Its first character.
    pub start: Position,
    /// Behind its last character.
    pub end: Position,
}
