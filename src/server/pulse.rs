//! The pulse of the process: a signal that it still runs its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time between two signals that the rest of the process runs.
const BEAT: Duration = Duration::from_secs(1);

/// The time without a signal after which the process counts as stuck: every thread is blocked by
/// something that does not end.
const LOST: Duration = Duration::from_mins(1);

/// Signals that the runtime that serves webhooks and scales clusters still runs its tasks.
#[derive(Debug)]
pub struct Pulse {
    start: Instant,
    /// Milliseconds after the start.
    last: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            last: AtomicU64::new(0),
        }
    }
}

impl Pulse {
    /// Signals for as long as this is polled.
    pub async fn beat(self: Arc<Self>) {
        let mut beats = tokio::time::interval(BEAT);
        loop {
            beats.tick().await;
            self.last.store(self.now(), Ordering::Relaxed);
        }
    }

    /// The time without a signal, if that is too long.
    pub fn lost(&self) -> Option<Duration> {
        // A signal that is given meanwhile is later than the time that was read.
        let since = self.now().saturating_sub(self.last.load(Ordering::Relaxed));
        let since = Duration::from_millis(since);
        (since > LOST).then_some(since)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_runs_nothing_any_more_is_noticed() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.lost(), None);
        pulse.start = pulse.start.checked_sub(LOST * 2).unwrap();
        assert!(pulse.lost().is_some());
        pulse.last.store(pulse.now(), Ordering::Relaxed);
        assert_eq!(pulse.lost(), None);
        pulse.last.store(pulse.now() + 60_000, Ordering::Relaxed);
        assert_eq!(
            pulse.lost(),
            None,
            "a signal came after the look at the clock"
        );
    }
}
