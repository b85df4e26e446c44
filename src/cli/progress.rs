//! Progress on a terminal, for what takes longer than a person likes to wait in the dark.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How long nothing is shown.
const QUIET: Duration = Duration::from_secs(2);

/// How often it is renewed.
const INTERVAL: Duration = Duration::from_millis(200);

/// A line on standard error that counts, if that is a terminal.
pub(super) struct Progress {
    total: usize,
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    pub(super) fn new(total: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            total,
            next: terminal.then(|| Instant::now() + QUIET),
            shown: false,
        }
    }

    /// Says that so many are done.
    pub(super) fn done(&mut self, count: usize) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            // Progress is worth no error.
            let _ = write!(
                std::io::stderr(),
                "\rchecked {count} of {} files",
                self.total
            );
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
