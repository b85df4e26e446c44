//! `rayfit trace`: recorded workloads of all forms, as one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::source::{self, InputSource};
use super::table::Table;
use super::{Outcome, outcome};
use crate::report::json::pretty;
use crate::simulate::trace::{self, Imported, Summary};

/// The largest file of a workload, in bytes: a hundred thousand tasks of Ray take half of it.
const MAX_BYTES: usize = 512 << 20;

/// How many shapes the summary shows for people.
const SHAPES: usize = 20;

/// Bytes of a key for names.
const KEY: usize = 32;

/// A recorded workload as JSON lines, whatever form it comes in
///
/// Reads what ray list tasks prints, the file of ray timeline, workflows of WfCommons, CSV, and the
/// JSON lines that it writes; docs/traces.md says what of each is taken and what is lost. What was
/// left out or assumed is told on standard error. Nothing leaves this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit trace tasks.json > trace.jsonl       # of ray list tasks --detail --format json\n  \
    rayfit trace --summary trace.jsonl\n  \
    rayfit trace --summary -o json workflow.json\n  \
    rayfit trace --hash-names tasks.json > trace.jsonl            # to show to others\n  \
    rayfit trace --schema > trace.schema.json\n\n\
    Exit codes: 0 done, 2 the file could not be read.")]
pub(super) struct Trace {
    /// The file, or - for standard input
    #[arg(required_unless_present = "schema", value_name = "FILE|-")]
    file: Option<PathBuf>,

    /// Print what it asks for in a few numbers, instead of the trace
    #[arg(long)]
    summary: bool,

    /// How to print the summary
    #[arg(
        short,
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        requires = "summary"
    )]
    output: Format,

    /// Replace all names but those of resources by hashes with a key that is forgotten
    #[arg(long)]
    hash_names: bool,

    /// Hash with the key in this file instead, so that several traces have the same hashes
    #[arg(long, value_name = "FILE", requires = "hash_names")]
    hash_key: Option<PathBuf>,

    /// Print the JSON schema of a line of a trace, and stop
    #[arg(long)]
    schema: bool,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

impl Trace {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut out = io::BufWriter::new(io::stdout());
        if self.schema {
            out.write_all(pretty(&trace::schema()).as_bytes())?;
        } else if let Some(file) = &self.file {
            self.print(&read(&source::single(file))?, &mut out)?;
        }
        out.flush()?;
        Ok(Outcome::Clean)
    }

    fn print(&self, read: &Imported, out: &mut impl Write) -> anyhow::Result<()> {
        for loss in &read.losses {
            outcome::warn(loss);
        }
        let hashed;
        let shown = if self.hash_names {
            hashed = trace::hash_names(&read.trace, &key(self.hash_key.as_deref())?);
            &hashed
        } else {
            &read.trace
        };
        match (self.summary, self.output) {
            (false, _) => {
                for line in trace::lines(shown) {
                    writeln!(out, "{line}")?;
                }
            }
            (true, Format::Text) => write!(out, "{}", text(&Summary::of(shown)))?,
            (true, Format::Json) => {
                let summary = serde_json::to_value(Summary::of(shown))?;
                out.write_all(pretty(&summary).as_bytes())?;
            }
        }
        Ok(())
    }
}

fn read(source: &InputSource) -> anyhow::Result<Imported> {
    let text = source.read_up_to(MAX_BYTES).context(source.name())?;
    let name = match source {
        InputSource::Stdin => "trace".to_owned(),
        InputSource::File(path) => {
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }
    };
    trace::import(&text, &name).context(source.name())
}

/// The key in a file, or a new one that nobody will know.
fn key(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let Some(file) = file else {
        let mut key = vec![0; KEY];
        let random = SystemRandom::new().fill(&mut key);
        random.map_err(|_| anyhow::anyhow!("this machine gives no random numbers for a key"))?;
        return Ok(key);
    };
    let key = std::fs::read(file).with_context(|| file.display().to_string())?;
    anyhow::ensure!(
        key.len() >= KEY,
        "{}: a key has {KEY} bytes or more; make one: head -c {KEY} /dev/urandom > {}",
        file.display(),
        file.display()
    );
    Ok(key)
}

fn text(summary: &Summary) -> String {
    let mut numbers = Table::new(&["TRACE", &summary.name]);
    let widest = summary.widest;
    for (what, number) in [
        ("jobs", summary.jobs.to_string()),
        ("CPU hours", rounded(summary.cpu_hours)),
        ("GPU hours", rounded(summary.gpu_hours)),
        ("span", format!("{} s", rounded(summary.span))),
        (
            "widest",
            format!(
                "{} jobs, {} CPUs, {} GPUs at once",
                widest.jobs,
                rounded(widest.cpus),
                rounded(widest.gpus)
            ),
        ),
        (
            "longest chain",
            format!(
                "{} jobs, {} s",
                summary.chain.jobs,
                rounded(summary.chain.seconds)
            ),
        ),
    ] {
        numbers.line([what.to_owned(), number]);
    }
    let mut shapes = Table::new(&["JOBS", "HOURS", "EACH ASKS FOR"]);
    for total in summary.shapes.iter().take(SHAPES) {
        shapes.line([
            total.jobs.to_string(),
            rounded(total.seconds / 3600.0),
            total.shape.clone(),
        ]);
    }
    let more = summary.shapes.len().saturating_sub(SHAPES);
    let more = match more {
        0 => String::new(),
        more => format!("and {more} more (-o json has all)\n"),
    };
    format!("{numbers}\n{shapes}{more}")
}

/// A number with at most two decimals.
fn rounded(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
