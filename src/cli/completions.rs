//! `rayfit completions`: shell completions for the command line.

use std::io::Write as _;

use clap_complete::Shell;

use super::Outcome;

/// Prints completions of a command line for a shell.
pub(super) fn run(shell: Shell, command: &mut clap::Command) -> anyhow::Result<Outcome> {
    // clap_complete panics when its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "rayfit", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Clean)
}
