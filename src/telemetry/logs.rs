//! Logs: one line per event on standard error, as text or JSON.
//!
//! The content of objects is never logged. Rayfit's own lines follow that rule; those of libraries
//! do not, and are filtered whatever the level (`is_shown`). Quotations of unreadable text in
//! errors are removed from every line before it is written (`unquoted`).

use std::borrow::Cow;
use std::io;

use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// Starts logging, also of panics. `filter` is a level (`info`) or directives (`rayfit=debug,hyper=warn`).
pub fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    subscriber(format, filter, io::stderr)?
        .try_init()
        .map_err(|error| anyhow::anyhow!("logging could not be started: {error}"))?;
    std::panic::set_hook(Box::new(|panic| {
        // The text of a panic can quote the object that was being checked, and pod templates can
        // contain secrets.
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panic; please report it as a bug of Rayfit");
    }));
    Ok(())
}

/// A subscriber that writes each log line to what `writer` gives.
pub fn subscriber<W: io::Write + 'static>(
    format: LogFormat,
    filter: &str,
    writer: impl Fn() -> W + Send + Sync + 'static,
) -> anyhow::Result<impl Subscriber + Send + Sync> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        anyhow::anyhow!("--log {filter}: {error}; write a level like info or debug")
    })?;
    let lines = fmt::layer()
        .with_target(false)
        .with_writer(move || Unquoting(writer()));
    let lines = match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    Ok(Registry::default()
        .with(filter)
        .with(filter_fn(is_shown))
        .with(lines))
}

/// Libraries that write the bodies of answers, headers with tokens, or errors that quote both.
// Anything important in them is also returned as an error.
const QUOTING: &[&str] = &["kube_client", "kube_runtime"];

/// Decides whether a line may be written at all.
fn is_shown(line: &Metadata<'_>) -> bool {
    let of = |name: &str| {
        let rest = line.target().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    // At lower levels than warnings, libraries log what they send and receive.
    of("rayfit") || (*line.level() <= Level::WARN && !QUOTING.iter().copied().any(of))
}

/// The texts that precede and follow a quotation in errors.
const QUOTATIONS: &[(&str, &str)] = &[
    ("invalid type: ", ", expected "),
    ("invalid value: ", ", expected "),
    ("unknown variant ", ", expected "),
    ("unknown field ", ", expected "),
];

/// A line without quotations.
fn unquoted(line: &str) -> Cow<'_, str> {
    let mut line = Cow::Borrowed(line);
    for (prefix, suffix) in QUOTATIONS {
        let Some(begin) = line.find(prefix).map(|place| place + prefix.len()) else {
            continue;
        };
        // The last occurrence, because the quotation may contain anything. If there is none, only
        // the line's end is kept.
        let expected = line.rfind(suffix).filter(|end| *end >= begin);
        let end = expected.unwrap_or_else(|| {
            let tail = ["\"}\n", "\n"].into_iter().find(|end| line.ends_with(end));
            line.len() - tail.unwrap_or_default().len()
        });
        if begin < end {
            line = format!("{}(not shown){}", &line[..begin], &line[end..]).into();
        }
    }
    line
}

/// Writes lines without quotations.
struct Unquoting<W>(W);

impl<W: io::Write> io::Write for Unquoting<W> {
    /// Gets a whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(unquoted(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_errors_quote_is_not_shown() {
        for (line, shown) in [
            (
                "x: invalid type: string \"a, expected b\", expected a map at line 1 column 9\n",
                "x: invalid type: (not shown), expected a map at line 1 column 9\n",
            ),
            (
                "{\"error\":\"unknown variant `secret`, expected `a` or `b`\"}\n",
                "{\"error\":\"unknown variant (not shown), expected `a` or `b`\"}\n",
            ),
            (
                "{\"error\":\"invalid value: string \\\"secret\\\"\"}\n",
                "{\"error\":\"invalid value: (not shown)\"}\n",
            ),
            ("nothing is quoted\n", "nothing is quoted\n"),
        ] {
            assert_eq!(unquoted(line), shown);
        }
    }
}
