//! A table: aligned columns of plain text for a terminal, or the cells of a page.

use std::fmt::{self, Write as _};

use crate::text::ForeignText;

/// Titles of columns, and lines with as many cells. A cell that says nothing is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The titles.
    pub titles: Vec<String>,
    /// The lines.
    pub lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles, and no lines yet.
    pub fn new(titles: &[&str]) -> Self {
        Self {
            titles: titles.iter().map(|title| (*title).to_owned()).collect(),
            lines: Vec::new(),
        }
    }

    /// Adds a line.
    pub fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        self.lines.push(cells.into_iter().collect());
    }

    /// Adds a column, with a cell for each line.
    pub fn column(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        self.titles.push(title.to_owned());
        for (line, cell) in self.lines.iter_mut().zip(cells) {
            line.push(cell);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names in cells are of objects and files, and a terminal must not obey them. Without a dash for an empty
        // cell, columns could not be told apart.
        let shown = |cell: &String| match &**cell {
            "" => "-".to_owned(),
            cell => ForeignText(cell).to_string(),
        };
        let lines = self.lines.iter();
        let lines = lines.map(|line| line.iter().map(shown).collect::<Vec<String>>());
        let lines: Vec<Vec<String>> = std::iter::once(self.titles.clone()).chain(lines).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.titles.len()).map(width).collect();
        for line in &lines {
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
