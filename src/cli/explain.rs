//! `rayfit explain`: explains one rule.

use std::io::Write as _;

use super::Outcome;
use crate::report::page;

/// Prints the page of the rule or default with this number or name.
pub(super) fn run(query: &str) -> anyhow::Result<Outcome> {
    let page = page::find(query).map_err(anyhow::Error::msg)?;
    anstream::stdout().write_all(page::render(&page).as_bytes())?;
    Ok(Outcome::Clean)
}
