//! Ends of commands: exit codes and error messages.

use std::io::{self, Write as _};

use rayfit_core::text::is_obeyed;

use crate::apiserver::error_chain;

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Done; nothing is denied. Exit code 0.
    Clean = 0,
    /// Done; an object would be denied. Exit code 1.
    Denied = 1,
    /// Wrong usage, or input that cannot be read. Exit code 2, as for clap's own errors.
    Failed = 2,
}

/// Writes the whole output of a command that found nothing to deny.
pub(in crate::cli) fn print(text: &str) -> anyhow::Result<Outcome> {
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Clean)
}

/// Writes `error` and its causes to standard error, unless the reader of the output has closed it
/// (`rayfit rules | head`).
pub(in crate::cli) fn report(error: &anyhow::Error) -> Outcome {
    let is_broken_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe);
    if !is_broken_pipe {
        // The text of a server is a stranger's.
        let is_foreign = error
            .chain()
            .any(<dyn std::error::Error>::is::<kube::Error>);
        complain(if is_foreign {
            error_chain::text(error.as_ref())
        } else {
            format!("{error:#}")
        });
    }
    Outcome::Failed
}

/// Writes one message to standard error.
pub(in crate::cli) fn complain(message: impl std::fmt::Display) {
    tell(anstyle::AnsiColor::Red, "error", &message);
}

/// Writes a warning to standard error.
pub(in crate::cli) fn warn(message: impl std::fmt::Display) {
    tell(anstyle::AnsiColor::Yellow, "warning", &message);
}

fn tell(color: anstyle::AnsiColor, what: &str, message: &dyn std::fmt::Display) {
    let style = color.on_default().bold();
    // Texts of others are quoted in messages; lines of their own are ours.
    let obeyed = |char: char| is_obeyed(char) && char != '\n';
    let message = message.to_string().replace(obeyed, "\u{fffd}");
    // If standard error is closed too, there is nothing left to do.
    let _ = writeln!(anstream::stderr(), "{style}{what}:{style:#} {message}");
}
