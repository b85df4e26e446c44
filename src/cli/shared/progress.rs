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
        let terminal = std::io::stderr().is_terminal();
        Self {
            verb,
            next: terminal.then(|| Instant::now() + QUIET),
            shown: false,
        }
    }

    /// Says that so many of all files are done.
    pub(in crate::cli) fn files(&mut self, count: usize, total: usize) {
        self.show(&format_args!("{count} of {total} files"));
    }

    /// Says that this share is done, from 0 to 1.
    pub(in crate::cli) fn share(&mut self, part: f64) {
        self.show(&format_args!("{:.0} %", part * 100.0));
    }

    /// Says how much was recorded, and for how long of the whole time.
    pub(in crate::cli) fn time(&mut self, past: Duration, all: Duration, count: usize) {
        let (past, all) = (past.as_secs(), all.as_secs());
        self.show(&format_args!(
            "{count} tasks and calls in {past} of {all} s; Ctrl-C ends it and writes them"
        ));
    }

    fn show(&mut self, how_far: &dyn fmt::Display) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            // A failure to show progress is ignored.
            let _ = write!(std::io::stderr(), "\r{} {how_far}", self.verb);
            self.next = Some(Instant::now() + INTERVAL);
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
