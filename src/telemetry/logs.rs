//! Logs: one line per event on standard error, as text or JSON.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// Starts logging. `filter` is a level (`info`) or directives (`rayfit=debug,hyper=warn`).
pub fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        anyhow::anyhow!("--log {filter}: {error}; write a level like info or debug")
    })?;
    let lines = fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging could not be started: {error}"))?;
    log_panics();
    Ok(())
}

/// Panics are logged by their place only: their text can quote the object that was being judged,
/// and pod templates hold secrets.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panic; please report it as a bug of Rayfit");
    }));
}
