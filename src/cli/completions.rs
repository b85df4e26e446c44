//! `rayfit completions`: shell completions for the command line.

use std::io::Write as _;

use clap_complete::Shell;

use super::Outcome;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit completions bash > /etc/bash_completion.d/rayfit\n  \
    rayfit completions zsh > \"${fpath[1]}/_rayfit\"\n  \
    rayfit completions fish > ~/.config/fish/completions/rayfit.fish")]
pub(super) struct CompletionsCommand {
    /// The shell to write them for
    shell: Shell,
}

impl CompletionsCommand {
    pub(super) fn run(self, command: &mut clap::Command) -> anyhow::Result<Outcome> {
        // clap_complete panics when its writer fails, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "rayfit", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(Outcome::Clean)
    }
}
