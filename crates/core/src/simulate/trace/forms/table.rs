//! Jobs as a table: CSV with a header.

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::quantity::Quantity;
use crate::simulate::trace::assemble::some;
use crate::simulate::trace::draft::{JobDraft, as_name};
use crate::simulate::trace::error::{Place, TraceError};
use crate::simulate::trace::job::{JobDemand, JobShape};
use crate::text::shown_text;

/// The titles of columns, each with the column that has it. Some columns have two.
const TITLES: &[(&str, &str)] = &[
    ("id", "id"),
    ("name", "name"),
    ("at", "at"),
    ("submit", "at"),
    ("seconds", "seconds"),
    ("duration", "seconds"),
    ("cpus", "cpus"),
    ("cpu", "cpus"),
    ("gpus", "gpus"),
    ("gpu", "gpus"),
    ("memory", "memory"),
    ("after", "after"),
    ("count", "count"),
];

fn column(title: &str) -> Option<&'static str> {
    let mut titles = TITLES.iter();
    let found = titles.find(|(known, _)| known.eq_ignore_ascii_case(title.trim()))?;
    Some(found.1)
}

/// Recognizes the first line of a table of jobs: it has a column with their duration.
pub(in crate::simulate::trace) fn is_header(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}');
    let mut titles = line
        .split(',')
        .map(|title| column(title.trim().trim_matches('"')));
    titles.any(|column| column == Some("seconds"))
}

/// A description of each line.
pub(in crate::simulate::trace) fn read(text: &str) -> Result<Vec<JobDraft>, TraceError> {
    // Spreadsheets put a byte order mark before the CSV that they save; with it the first title
    // would be unknown.
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = ReaderBuilder::new()
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let header = reader.headers();
    let mut columns = Vec::new();
    for title in header.map_err(|error| unreadable(&error, text))? {
        let Some(column) = column(title) else {
            let known = || TITLES.iter().map(|(known, _)| *known);
            let otherwise = || format!("there are {}", known().collect::<Vec<_>>().join(", "));
            return Err(Place::Line(1).unknown("column", title, known(), otherwise));
        };
        if columns.contains(&column) {
            let expected = "there is one before that says the same; take one of them out";
            return Err(Place::Line(1).wrong("the column", &shown_text(title), expected));
        }
        columns.push(column);
    }
    let mut drafts = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(&error, text))?;
        let row = TableRow {
            place: place(record.position(), text),
            columns: &columns,
            record: &record,
        };
        drafts.push(draft(&row, drafts.len() + 1)?);
    }
    some(&drafts, ": there are no lines below the header")?;
    Ok(drafts)
}

fn unreadable(error: &csv::Error, text: &str) -> TraceError {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => place(error.position(), text).fault(format!(
            "it has {len} cells, the header {expected_len}; leave cells empty, not out"
        )),
        _ => Place::Whole.fault(error.to_string()),
    }
}

/// The line of a record, whose position is before the empty lines above it.
fn place(position: Option<&csv::Position>, text: &str) -> Place {
    let Some(position) = position else {
        return Place::Whole;
    };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let line = usize::try_from(position.line()).unwrap_or(usize::MAX);
    let rest = text.as_bytes().get(start..).unwrap_or_default().iter();
    let empty = rest.take_while(|byte| matches!(byte, b'\n' | b'\r'));
    Place::Line(line + empty.filter(|byte| **byte == b'\n').count())
}

/// The cells of a line.
struct TableRow<'a> {
    place: Place,
    columns: &'a [&'static str],
    record: &'a StringRecord,
}

impl<'a> TableRow<'a> {
    /// The cell of a column, unless it is empty.
    fn cell(&self, column: &str) -> Option<&'a str> {
        let index = self.columns.iter().position(|known| *known == column)?;
        self.record.get(index).filter(|cell| !cell.is_empty())
    }

    fn number(&self, column: &str) -> Result<Option<f64>, TraceError> {
        let cell = self.cell(column).map(|cell| {
            let number = cell.parse::<f64>();
            number.map_err(|_| self.wrong(column, cell, "write a number such as 1.5"))
        });
        cell.transpose()
    }

    fn wrong(&self, what: &str, cell: &str, expected: &str) -> TraceError {
        self.place.wrong(what, &shown_text(cell), expected)
    }
}

fn draft(row: &TableRow<'_>, number: usize) -> Result<JobDraft, TraceError> {
    let seconds = row.number("seconds")?.ok_or_else(|| {
        let remedy = "each line says how long the job takes";
        row.place.missing("seconds", remedy)
    })?;
    let id = row.cell("id");
    let id = id.map_or_else(|| format!("job-{number}"), str::to_owned);
    let after = row.cell("after").unwrap_or_default();
    // No comma: it would end the cell, unless users quote it.
    let after = after.split([' ', ';']).filter(|id| !id.is_empty());
    let count = row.cell("count").map(|cell| {
        let count = cell.parse::<usize>();
        count.map_err(|_| row.wrong("count", cell, "write a whole number"))
    });
    let name = row.cell("name").map_or_else(|| id.clone(), as_name);
    let at = row.number("at")?.unwrap_or(0.0);
    let count = count.transpose()?.unwrap_or(1);
    // A job asks for one CPU by default, as of Ray.
    let cpus = row.number("cpus")?.unwrap_or(1.0);
    let mut shape = JobShape::from([("CPU".to_owned(), cpus)]);
    if let Some(gpus) = row.number("gpus")? {
        shape.insert("GPU".to_owned(), gpus);
    }
    if let Some(cell) = row.cell("memory") {
        let remedy = "write bytes, or a quantity such as 4Gi";
        let bytes = Quantity::parse(cell).map_err(|_| row.wrong("memory", cell, remedy))?;
        shape.insert("memory".to_owned(), bytes.ceil_units() as f64);
    }
    let mut draft = JobDraft::new(row.place.clone(), id, JobDemand::Task(shape));
    (draft.job.name, draft.job.at, draft.job.seconds) = (name, at, seconds);
    draft.after = after.map(str::to_owned).collect();
    draft.count = count;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_and_empty_ones_left_to_what_is_usual() {
        let drafts = read(
            "id,name,submit,duration,cpu,gpu,memory,after,count\n\
             a,load,1.5,10,2,0.5,1Gi,,3\n\
             ,,,5,,,,a#1; a#2,\n",
        )
        .unwrap();
        let [first, second] = &drafts[..] else {
            panic!("{drafts:?}")
        };
        assert_eq!(
            (first.job.id.as_str(), first.job.name.as_str(), first.count),
            ("a", "load", 3)
        );
        let shape = [("CPU", 2.0), ("GPU", 0.5), ("memory", 1_073_741_824.0)];
        let shape: JobShape = shape.map(|(name, amount)| (name.to_owned(), amount)).into();
        assert_eq!(first.job.demand.shapes(), [shape]);
        assert_eq!((second.job.id.as_str(), second.count), ("job-2", 1));
        assert_eq!(
            second.job.demand.shapes(),
            [JobShape::from([("CPU".to_owned(), 1.0)])]
        );
        assert_eq!(second.after, ["a#1", "a#2"]);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refused("id,secnds\n"),
            "line 1: there is no column \"secnds\"; did you mean \"seconds\"?"
        );
        assert_eq!(
            refused("seconds,duration\n1,1\n"),
            "line 1: the column is \"duration\"; there is one before that says the same; take one of \
             them out"
        );
        assert_eq!(
            refused("seconds,id\n1,a\nx,b\n"),
            "line 3: seconds is \"x\"; write a number such as 1.5"
        );
        assert_eq!(
            refused("seconds,id\n\n,b\n"),
            "line 3: seconds is missing; each line says how long the job takes"
        );
        assert_eq!(
            refused("seconds,id\n1\n"),
            "line 2: it has 1 cells, the header 2; leave cells empty, not out"
        );
        assert_eq!(
            refused("seconds,memory\n1,4GB\n"),
            "line 2: memory is \"4GB\"; write bytes, or a quantity such as 4Gi"
        );
        assert_eq!(
            refused("seconds\n"),
            "there is no job in it: there are no lines below the header"
        );
    }
}
