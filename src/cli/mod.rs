//! The command line: one file per command. This is part of the shell: it reads files and the
//! terminal, and leaves every decision to the core.
//!
//! A command is a clap struct with `fn run(self) -> anyhow::Result<Outcome>`; to add one, write its file and list it in
//! `Command`. Those of one expression are written there.

mod check;
mod default;
mod dev_certs;
mod live;
mod manifests;
mod plan;
mod recommend;
mod record;
mod record_trace;
mod release;
mod rollout;
mod serve;
pub mod shared;
mod sidecar;
mod simulate;
mod status;
mod trace;
mod vap;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};

pub use shared::outcome::Outcome;

use shared::format::CatalogueFormat;
use shared::outcome::{print, report};

use rayfit_core::manifests::to_yaml;
use rayfit_core::policy::resource;
use rayfit_core::report::{catalogue, page};

/// Makes Ray clusters on Kubernetes (KubeRay) scale and resize in place safely.
#[derive(Debug, Parser)]
#[command(
    name = "rayfit",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 success, 1 an object would be denied, 2 wrong usage or unreadable input.\n\n\
                  Start with: rayfit check my-raycluster.yaml"
)]
enum Command {
    Check(check::CheckCommand),
    Default(default::DefaultCommand),
    Plan(plan::PlanCommand),
    Trace(trace::TraceCommand),
    Record(record::RecordCommand),
    Recommend(recommend::RecommendCommand),
    Simulate(simulate::SimulateCommand),
    Status(status::StatusCommand),
    /// Explain one rule or default
    #[command(after_help = "Examples:\n  \
        rayfit explain RF105\n  \
        rayfit explain ippr-start-params\n  \
        rayfit explain DF01")]
    Explain {
        /// Its number or name: RF105, DF01, ippr-start-params
        #[arg(value_name = "RULE")]
        query: String,
    },
    /// List the rules and defaults
    #[command(after_help = "Examples:\n  \
        rayfit rules\n  \
        rayfit rules -o json | jq '.[] | select(.mode == \"enforce\") | .id'")]
    Rules {
        /// Output format
        #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
        output: CatalogueFormat,
    },
    Serve(Box<serve::ServeCommand>),
    Sidecar(sidecar::SidecarCommand),
    Manifests(manifests::ManifestsCommand),
    /// Print the CustomResourceDefinition of RayPolicy
    ///
    /// `rayfit manifests` prints it too; use this command if you install definitions separately.
    #[command(after_help = "Example:\n  rayfit crd | kubectl apply --server-side -f -")]
    Crd,
    Rollout(rollout::RolloutCommand),
    Release(release::ReleaseCommand),
    Vap(vap::VapCommand),
    DevCerts(dev_certs::DevCertsCommand),
    /// Print shell completions
    #[command(after_help = "Examples:\n  \
        rayfit completions bash > /etc/bash_completion.d/rayfit\n  \
        rayfit completions zsh > \"${fpath[1]}/_rayfit\"\n  \
        rayfit completions fish > ~/.config/fish/completions/rayfit.fish")]
    Completions {
        /// The shell to write them for
        shell: clap_complete::Shell,
    },
}

impl Command {
    fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Check(command) => command.run(),
            Self::Default(command) => command.run(),
            Self::Plan(command) => command.run(),
            Self::Trace(command) => command.run(),
            Self::Record(command) => command.run(),
            Self::Recommend(command) => command.run(),
            Self::Simulate(command) => command.run(),
            Self::Status(command) => command.run(),
            Self::Explain { query } => {
                let page = page::find(&query).map_err(anyhow::Error::msg)?;
                print(&page::render(&page))
            }
            Self::Rules { output } => {
                let pages = page::all();
                print(&match output {
                    CatalogueFormat::Text => catalogue::text(&pages),
                    CatalogueFormat::Json => catalogue::json(&pages),
                    CatalogueFormat::Markdown => catalogue::markdown(&pages),
                })
            }
            Self::Serve(command) => command.run(),
            Self::Sidecar(command) => command.run(),
            Self::Manifests(command) => command.run(),
            Self::Crd => print(&to_yaml(&[resource::definition()])),
            Self::Rollout(command) => command.run(),
            Self::Release(command) => command.run(),
            Self::Vap(command) => command.run(),
            Self::DevCerts(command) => command.run(),
            Self::Completions { shell } => {
                // clap_complete panics when its writer fails, so it writes to memory.
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut command(), "rayfit", &mut script);
                print(&String::from_utf8(script)?)
            }
        }
    }
}

/// Reads the arguments, runs the command and prints errors.
pub fn main() -> ExitCode {
    let ended = Command::parse().run();
    let outcome = ended.unwrap_or_else(|error| report(&error));
    ExitCode::from(outcome as u8)
}

/// The command line as clap knows it, for completions and documentation.
pub fn command() -> clap::Command {
    Command::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::command().debug_assert();
    }
}
