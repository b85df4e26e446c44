//! Progress on a terminal, for commands that take long.

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The time before progress is first shown.
const QUIET: Duration = Duration::from_secs(2);

/// The time between two updates.
const INTERVAL: Duration = Duration::from_millis(200);

/// A line on standard error that tells how far something is, if that is a terminal.
pub(in crate::cli) struct Progress {
    verb: &'static str,
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Progress of something that is `checked`, or `simulated`.
    pub(in crate::cli) fn new(verb: &'static str) -> Self {
        // A log would keep every update, because nothing there goes back to the beginning of a line.
        let terminal = std::io::stderr().is_terminal();
        Self {
            verb,
            next: terminal.then(|| Instant::now() + QUIET),
            shown: false,
        }
    }

    /// Says that this share is done, from 0 to 1.
    pub(in crate::cli) fn share(&mut self, part: f64) {
        self.show(format_args!("{:.0} %", part * 100.0));
    }

    /// Says how far it is, unless that was said just before.
    pub(in crate::cli) fn show(&mut self, how_far: fmt::Arguments<'_>) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            // Standard error may be closed, which is no reason to end what is in progress.
            let _ = write!(std::io::stderr(), "\r{} {how_far}", self.verb);
            self.next = Some(Instant::now() + INTERVAL);
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            // The result follows on the same terminal.
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
