//! `rayfit trace`: recorded workloads of all forms, as one.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use rayfit_core::report::json::pretty;
use rayfit_core::report::table::Table;
use rayfit_core::simulate::trace::{self, Summary};

use super::Outcome;
use super::shared::format::TextFormat;
use super::shared::hashing::HashArgs;
use super::shared::outcome;
use super::shared::source::{self, InputSource};

/// The largest file of a workload, in bytes: a hundred thousand tasks of Ray take half of it.
const MAX_BYTES: usize = 512 << 20;

/// The number of shapes in the summary for people.
const SHAPES: usize = 20;

/// A recorded workload as JSON lines, whatever form it comes in
///
/// Reads what ray list tasks prints, CSV, and the JSON lines that it writes; docs/traces.md says what
/// is taken from each and what is lost. What was left out or assumed is told on standard error.
/// Nothing leaves this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit trace tasks.json > trace.jsonl       # of ray list tasks --detail --format json\n  \
    rayfit trace --summary trace.jsonl\n  \
    rayfit trace --summary -o json jobs.csv\n  \
    rayfit trace --hash-names tasks.json > trace.jsonl            # to show to others\n  \
    rayfit trace --schema > trace.schema.json\n\n\
    Exit codes: 0 done, 2 the file could not be read.")]
pub(super) struct TraceCommand {
    /// The file, or - for standard input
    #[arg(required_unless_present = "schema", value_name = "FILE|-")]
    file: Option<PathBuf>,

    /// Print what it asks for in a few numbers, instead of the trace
    #[arg(long)]
    summary: bool,

    /// The format of the summary
    #[arg(
        short,
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        requires = "summary"
    )]
    output: TextFormat,

    #[command(flatten)]
    hashing: HashArgs,

    /// Print the JSON schema of a line of a trace, and stop
    #[arg(long)]
    schema: bool,
}

impl TraceCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut out = io::BufWriter::new(io::stdout());
        if self.schema {
            out.write_all(pretty(&trace::schema()).as_bytes())?;
        } else if let Some(file) = &self.file {
            self.print(&source::single(file), &mut out)?;
        }
        out.flush()?;
        Ok(Outcome::Clean)
    }

    fn print(&self, source: &InputSource, out: &mut impl Write) -> anyhow::Result<()> {
        let text = source.read_up_to(MAX_BYTES).context(source.name())?;
        // The own form has a name in its header; others have none, and take that of the file.
        let name = match source {
            InputSource::Stdin => "trace".to_owned(),
            InputSource::File(path) | InputSource::Found(path) => {
                let stem = path.file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            }
        };
        let (imported, losses) = trace::import(&text, &name).context(source.name())?;
        losses.iter().for_each(outcome::warn);
        let shown = &self.hashing.hashed(imported)?;
        match (self.summary, self.output) {
            (false, _) => {
                for line in trace::lines(shown) {
                    writeln!(out, "{line}")?;
                }
            }
            (true, TextFormat::Text) => write!(out, "{}", summary_text(&Summary::of(shown)))?,
            (true, TextFormat::Json) => {
                let summary = serde_json::to_value(Summary::of(shown))?;
                out.write_all(pretty(&summary).as_bytes())?;
            }
        }
        Ok(())
    }
}

fn summary_text(summary: &Summary) -> String {
    let mut numbers = Table::new(&["TRACE", &summary.name]);
    let (widest, chain) = (summary.widest, &summary.chain);
    let (cpus, devices) = (rounded(widest.cpus), rounded(widest.gpus));
    let at_once = format!("{} jobs, {cpus} CPUs, {devices} GPUs at once", widest.jobs);
    let longest = format!("{} jobs, {} s", chain.jobs, rounded(chain.seconds));
    for (what, number) in [
        ("jobs", summary.jobs.to_string()),
        ("CPU hours", rounded(summary.cpu_hours)),
        ("GPU hours", rounded(summary.gpu_hours)),
        ("span", format!("{} s", rounded(summary.span))),
        ("widest", at_once),
        ("longest chain", longest),
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
