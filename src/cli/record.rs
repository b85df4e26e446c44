//! `rayfit record`: a snapshot of a live cluster.

use std::io::{self, Write as _};

use rayfit_core::report::json::harmless;
use rayfit_core::simulate::trace;
use rayfit_core::yaml::write;

use super::Outcome;
use super::live::{self, LiveArgs};
use super::record_trace::{self, RecordingArgs};
use super::shared::hashing::HashArgs;
use super::shared::outcome;
use crate::controller::observe::Key;

/// Write a snapshot of a live cluster: everything that decisions about it need; or its workload
///
/// For bug reports, and for rayfit plan. It writes only a fixed list of fields (see docs/planner.md): no
/// environment variables, volumes, commands or passwords, no annotations and labels of other tools, and only those
/// start parameters that decide the size of nodes. With --trace it writes what the cluster runs, as JSON
/// lines for rayfit simulate and rayfit recommend: when tasks and actors ran and what they asked for,
/// never their arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit record ray/demo > snapshot.yaml\n  \
    rayfit record ray/demo -o json | rayfit plan -\n  \
    rayfit record --trace ray/demo --for 1h > trace.jsonl\n  \
    rayfit record --trace ray/demo --for 8h --hash-names > trace.jsonl")]
pub(super) struct RecordCommand {
    /// The RayCluster
    #[arg(value_name = "NAMESPACE/NAME", value_parser = live::cluster_name)]
    cluster: Key,

    /// Output format of a snapshot
    #[arg(
        short,
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        conflicts_with = "trace"
    )]
    output: SnapshotFormat,

    /// Record the workload of the cluster instead: tasks, actors and placement groups
    #[arg(long)]
    trace: bool,

    #[command(flatten)]
    recording: RecordingArgs,

    #[command(flatten)]
    hashing: HashArgs,

    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum SnapshotFormat {
    /// A YAML document
    #[default]
    Yaml,
    /// One line of JSON
    Json,
}

impl RecordCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut out = io::BufWriter::new(io::stdout());
        if self.trace {
            let recorded = record_trace::record(&self.cluster, &self.live, &self.recording)?;
            for line in trace::lines(&self.hashing.hashed(recorded)?) {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
            return Ok(Outcome::Clean);
        }
        anyhow::ensure!(
            !self.hashing.hash_names,
            "a snapshot has its names: --hash-names goes with --trace"
        );
        let look = self.live.look_to_record(&self.cluster)?;
        let text = match self.output {
            SnapshotFormat::Yaml => write(&serde_json::to_value(&look.snapshot)?),
            SnapshotFormat::Json => harmless(&serde_json::to_string(&look.snapshot)?) + "\n",
        };
        out.write_all(text.as_bytes())?;
        out.flush()?;
        // Only after the snapshot was written: a bug report about a GCS that does not answer needs
        // the rest of it.
        if let Some(why) = look.unreachable {
            outcome::complain(format_args!(
                "the snapshot lacks Ray's demand and nodes: {why}"
            ));
            return Ok(Outcome::Failed);
        }
        Ok(Outcome::Clean)
    }
}
