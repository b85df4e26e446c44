//! `rayfit rules`: the catalogue.

use rayfit_core::report::{catalogue, page};

use super::Outcome;
use super::shared::outcome;

/// List the rules and defaults
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit rules\n  \
    rayfit rules -o json | jq '.[] | select(.mode == \"enforce\") | .id'")]
pub(super) struct RulesCommand {
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: CatalogueFormat,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum CatalogueFormat {
    /// An aligned table
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// The documentation page, one section per rule
    Markdown,
}

impl RulesCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let pages = page::all();
        let text = match self.output {
            CatalogueFormat::Text => catalogue::text(&pages),
            CatalogueFormat::Json => catalogue::json(&pages),
            CatalogueFormat::Markdown => catalogue::markdown(&pages),
        };
        outcome::print(&text)
    }
}
