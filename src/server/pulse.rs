//! The pulse of the process: a signal that it still runs its tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time between two signals that the rest of the process runs.
const BEAT: Duration = Duration::from_secs(1);

/// The time without a signal after which the process counts as stuck: every thread is blocked by
/// something that does not end.
const LOST: Duration = Duration::from_mins(1);

/// Signals that the runtime that serves webhooks and scales clusters still runs its tasks.
#[derive(Debug)]
pub struct Pulse {
    last: Mutex<Instant>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            last: Mutex::new(Instant::now()),
        }
    }
}

impl Pulse {
    /// Signals for as long as this is polled.
    pub async fn beat(self: Arc<Self>) {
        let mut beats = tokio::time::interval(BEAT);
        loop {
            beats.tick().await;
            *self.last.lock() = Instant::now();
        }
    }

    /// The time without a signal, if that is too long.
    pub fn lost(&self) -> Option<Duration> {
        let since = self.last.lock().elapsed();
        (since > LOST).then_some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_runs_nothing_any_more_is_noticed() {
        let pulse = Pulse::default();
        assert_eq!(pulse.lost(), None);
        let begun = *pulse.last.lock();
        *pulse.last.lock() = begun.checked_sub(LOST * 2).unwrap();
        assert!(pulse.lost().is_some());
        *pulse.last.lock() = begun;
        assert_eq!(pulse.lost(), None);
        *pulse.last.lock() = begun + LOST;
        assert_eq!(
            pulse.lost(),
            None,
            "a signal came after the look at the clock"
        );
    }
}
