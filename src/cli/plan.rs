//! `rayfit plan`: what the controller would do about a snapshot, and why.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rayfit_core::plan::{PlanLine, PlanSettings, Strategy, check, decide, schema};
use rayfit_core::report::json::{harmless, pretty};
use rayfit_core::snapshot::{self, Snapshot};

use super::Outcome;
use super::live::{self, LiveArgs};
use super::shared::format::TextFormat;
use super::shared::outcome;
use super::shared::source;
use super::shared::workload;
use crate::controller::observe::Key;

/// The largest file of snapshots, in bytes. A snapshot with ten thousand pods takes about 100 MB.
const MAX_BYTES: usize = 512 << 20;

/// Print what the controller would do now, why, and why not more
///
/// Reads snapshots (YAML or JSON files, files of one JSON object per line, folders with *.yaml, *.yml
/// and *.json, or standard input) or a live cluster. Changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit plan snapshot.yaml\n  \
    rayfit plan ray/demo                          # a live RayCluster\n  \
    rayfit plan --strategy ray snapshot.yaml      # what Ray's own autoscaler would do\n  \
    rayfit plan -o json corpus.jsonl              # one JSON line per snapshot\n  \
    rayfit plan --schema snapshot > snapshot.schema.json\n\n\
    Exit codes: 0 success, 2 some snapshot could not be read.")]
pub(super) struct PlanCommand {
    /// Files, folders, - for standard input, or live clusters
    #[arg(
        required_unless_present = "schema",
        value_name = "SNAPSHOT|DIR|-|NAMESPACE/NAME"
    )]
    inputs: Vec<PathBuf>,

    /// Strategy [default: the one that RayPolicies set for a live cluster, else rayfit]
    #[arg(long, value_parser = workload::strategy())]
    strategy: Option<Strategy>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,

    /// Print the JSON schema of a snapshot, or of a line of `-o json`, and stop
    #[arg(long, value_enum, value_name = "WHAT")]
    schema: Option<SchemaOf>,

    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SchemaOf {
    /// The input
    Snapshot,
    /// The output
    Plan,
}

impl PlanCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        // Standard output is written at the end of each line; of a corpus of thousands of snapshots
        // that would be as many system calls.
        let mut out = io::BufWriter::new(anstream::stdout());
        let mut result = Outcome::Clean;
        match self.schema {
            Some(SchemaOf::Snapshot) => out.write_all(pretty(&schema::snapshot()).as_bytes())?,
            Some(SchemaOf::Plan) => out.write_all(pretty(&schema::line()).as_bytes())?,
            None => {
                for input in &self.inputs {
                    result = result.max(self.plan_input(input, &mut out)?);
                }
            }
        }
        out.flush()?;
        Ok(result)
    }

    /// A snapshot that cannot be read is reported, and the others are still planned.
    fn plan_input(&self, input: &Path, out: &mut impl Write) -> anyhow::Result<Outcome> {
        if let Some(cluster) = live::named(input) {
            return match self.plan_live(&cluster, out) {
                Ok(()) => Ok(Outcome::Clean),
                Err(error) => unread(&cluster, anyhow::anyhow!("{error:#}").as_ref(), out),
            };
        }
        let sources = match source::expand(input, &[]) {
            Ok(sources) => sources,
            Err(error) => return unread(&input.display(), error.as_ref(), out),
        };
        let mut result = Outcome::Clean;
        for source in &sources {
            let text = match source.read_up_to(MAX_BYTES) {
                Ok(text) => text,
                Err(error) => {
                    result = unread(&source.name(), error.as_ref(), out)?;
                    continue;
                }
            };
            for read in snapshot::read_all(&text) {
                match read {
                    Ok(snapshot) => self.plan(&snapshot, PlanSettings::default(), None, out)?,
                    Err(error) => result = unread(&source.name(), &error, out)?,
                }
            }
        }
        Ok(result)
    }

    fn plan_live(&self, cluster: &Key, out: &mut impl Write) -> anyhow::Result<()> {
        let (look, usual) = self.live.look_to_plan(cluster)?;
        let limitation = look.limitation();
        let snapshot = look.complete()?;
        let strategy = self.strategy.unwrap_or(usual.strategy);
        self.plan(&snapshot, usual, limitation, out)?;
        // The controller's memory is not in the objects, and may make it wait.
        let has_gangs = !snapshot.gcs.pending_gang_resource_requests.is_empty();
        if strategy.is_rayfit() && has_gangs && matches!(self.output, TextFormat::Text) {
            writeln!(
                out,
                "not known here: whether a placement group waits to be tried again, which only the \
                 controller remembers; its Event CannotFit says so"
            )?;
        }
        Ok(())
    }

    fn plan(
        &self,
        snapshot: &Snapshot,
        usual: PlanSettings,
        limitation: Option<&str>,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        let settings = PlanSettings {
            strategy: self.strategy.unwrap_or(usual.strategy),
            ..usual
        };
        let (plan, report) = decide(snapshot, &settings);
        // The controller checks its plans so too, and does not act on the parts that break a rule.
        let mut violations = check::check(snapshot, &plan);
        violations.extend(check::above_workers(snapshot, &plan, settings.max_workers));
        match self.output {
            TextFormat::Text => {
                writeln!(out, "{} at {}", plan.cluster, snapshot.time)?;
                if let Some(limitation) = limitation {
                    writeln!(out, "  {limitation}")?;
                }
                write!(out, "{plan}")?;
                for violation in violations {
                    writeln!(out, "  not to be acted on: {violation}")?;
                }
                writeln!(out, "why:\n{report}")?;
            }
            TextFormat::Json => {
                let violations = violations.iter().map(ToString::to_string).collect();
                let line = PlanLine {
                    plan,
                    report,
                    violations,
                };
                writeln!(out, "{}", harmless(&serde_json::to_string(&line)?))?;
            }
        }
        Ok(())
    }
}

/// Reports what could not be read, after the output so far.
fn unread(
    name: &dyn std::fmt::Display,
    error: &dyn std::error::Error,
    out: &mut impl Write,
) -> anyhow::Result<Outcome> {
    out.flush()?;
    outcome::complain(format_args!("{name}: {error}"));
    Ok(Outcome::Failed)
}
