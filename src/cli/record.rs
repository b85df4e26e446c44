//! `rayfit record`: a snapshot of a live cluster.

use std::io::{self, Write as _};

use super::live::{self, LiveArgs};
use super::{Outcome, outcome};
use crate::controller::observe::Key;

/// A snapshot of a live cluster: all that a decision about it needs
///
/// Only what is on a list of fields is written (docs/planner.md names them): no environment, volume,
/// command or password, no start parameter but those that sizes are made of, no annotation of other
/// tools. For bug reports, and for rayfit plan.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit record ray/demo > snapshot.yaml\n  \
    rayfit record ray/demo -o json | rayfit plan -")]
pub(super) struct Record {
    /// The RayCluster
    #[arg(value_name = "NAMESPACE/NAME", value_parser = live::cluster_name)]
    cluster: Key,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// A YAML document
    #[default]
    Yaml,
    /// One line of JSON
    Json,
}

impl Record {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let look = self.live.look_once(&self.cluster)?;
        let mut out = io::BufWriter::new(io::stdout());
        match self.output {
            Format::Yaml => out.write_all(serde_saphyr::to_string(&look.snapshot)?.as_bytes())?,
            Format::Json => writeln!(out, "{}", serde_json::to_string(&look.snapshot)?)?,
        }
        out.flush()?;
        if let Some(why) = look.unreachable {
            outcome::complain(format_args!(
                "the snapshot is without Ray's demand and nodes: {why}"
            ));
            return Ok(Outcome::Failed);
        }
        Ok(Outcome::Clean)
    }
}
