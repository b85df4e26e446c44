//! Progress on a terminal, for commands that take long.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The time before progress is first shown.
const QUIET: Duration = Duration::from_secs(2);

/// How often it is updated.
const INTERVAL: Duration = Duration::from_millis(200);

/// A line with a count on standard error, if that is a terminal.
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

    /// Shows that `count` files are done.
    pub(super) fn done(&mut self, count: usize) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            // A failure to show progress is ignored.
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
