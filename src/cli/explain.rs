//! `rayfit explain`: all about one rule.

use super::Outcome;

/// All about one rule or default
#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    /// Its number or name: RF105, DF01, ippr-start-params
    rule: String,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        anyhow::bail!("no page for {} yet", self.rule)
    }
}
