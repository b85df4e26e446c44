//! How a command ends: exit codes, and errors in words.

use std::io::{self, Write as _};
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Done; nothing is denied. Exit code 0.
    Clean,
    /// Done; an object would be denied. Exit code 1.
    Denied,
    /// Wrong usage, or input that cannot be read. Exit code 2, as for clap's own errors.
    Failed,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Clean => 0,
            Outcome::Denied => 1,
            Outcome::Failed => 2,
        })
    }
}

/// Writes `error` and what led to it to standard error. A reader of our output that went away
/// (`rayfit rules | head`) is no news to anyone.
pub(super) fn report(error: &anyhow::Error) -> Outcome {
    if !is_broken_pipe(error) {
        complain(format_args!("{error:#}"));
    }
    Outcome::Failed
}

/// Writes one line to standard output.
pub(super) fn say(line: &str) -> io::Result<()> {
    writeln!(anstream::stdout(), "{line}")
}

/// Writes one message to standard error.
pub(super) fn complain(message: impl std::fmt::Display) {
    tell(anstyle::AnsiColor::Red, "error", &message);
}

/// Writes to standard error what does not keep the command from its work.
pub(super) fn warn(message: impl std::fmt::Display) {
    tell(anstyle::AnsiColor::Yellow, "warning", &message);
}

fn tell(color: anstyle::AnsiColor, what: &str, message: &dyn std::fmt::Display) {
    let style = color.on_default().bold();
    // Nothing is left to do where standard error is gone as well.
    let _ = writeln!(anstream::stderr(), "{style}{what}:{style:#} {message}");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
