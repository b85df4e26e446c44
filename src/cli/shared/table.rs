//! Aligned columns of plain text.

use std::fmt::{self, Write as _};

use crate::text::ForeignText;

/// A table: a line of titles, and lines with the same number of cells.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub(in crate::cli) fn new(titles: &[&str]) -> Self {
        Self {
            lines: vec![titles.iter().map(|title| (*title).to_owned()).collect()],
        }
    }

    /// Adds a line. An empty cell shows as a dash.
    pub(in crate::cli) fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        let dash = |cell: String| {
            if cell.is_empty() {
                // Otherwise columns could not be told apart.
                "-".to_owned()
            } else {
                ForeignText(cell).to_string()
            }
        };
        self.lines.push(cells.into_iter().map(dash).collect());
    }

    /// The number of lines, titles not counted.
    pub(in crate::cli) fn len(&self) -> usize {
        self.lines.len().saturating_sub(1)
    }

    /// Whether there are no lines besides the titles.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for line in &self.lines {
            let mut text = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(text, "{cell:<width$}  ");
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["GROUP", "MAX"]);
        table.line(["cpu".to_owned(), "4".to_owned()]);
        table.line(["accelerated".to_owned(), String::new()]);
        assert_eq!(
            table.to_string(),
            "GROUP        MAX\ncpu          4\naccelerated  -\n"
        );
    }
}
