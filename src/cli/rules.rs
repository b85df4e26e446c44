//! `rayfit rules`: the catalogue.

use std::io::Write as _;

use super::Outcome;
use crate::rules::RULES;

/// The catalogue of rules and defaults
#[derive(Debug, clap::Args)]
pub(super) struct Rules {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    #[default]
    Text,
}

impl Rules {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let Format::Text = self.output;
        let mut out = anstream::stdout();
        for rule in RULES {
            writeln!(out, "{}  {}", rule.id, rule.summary)?;
        }
        Ok(Outcome::Clean)
    }
}
