//! `rayfit explain`: explains one rule.

use std::io::Write as _;

use super::Outcome;
use crate::report::page;

/// Explain one rule or default
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit explain RF105\n  \
    rayfit explain ippr-start-params\n  \
    rayfit explain DF01")]
pub(super) struct ExplainCommand {
    /// Its number or name: RF105, DF01, ippr-start-params
    #[arg(value_name = "RULE")]
    query: String,
}

impl ExplainCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let page = page::find(&self.query).map_err(anyhow::Error::msg)?;
        anstream::stdout().write_all(page::render(&page).as_bytes())?;
        Ok(Outcome::Clean)
    }
}
