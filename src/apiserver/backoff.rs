//! Back-off after failures: the wait grows from one failure to the next, and is random, so that
//! clients that failed at the same moment do not come back together.

use std::time::Duration;

/// Waits that grow up to a longest one.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// A back-off from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// Makes the next wait the first one again, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait after one more failure, and never less than the server has `asked` for.
    pub fn wait(&mut self, asked: Option<Duration>) -> Duration {
        self.wait_with(asked, fastrand::f64())
    }

    fn wait_with(&mut self, asked: Option<Duration>, random: f64) -> Duration {
        // More doublings than these exceed any longest wait.
        let doubled = self.first * 2_u32.pow(self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let whole = doubled.min(self.longest);
        let wait = whole.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        wait.max(asked.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new(SECOND, SECOND * 5);
        let waits: Vec<_> = (0..4).map(|_| backoff.wait_with(None, 1.0)).collect();
        assert_eq!(waits, [SECOND, SECOND * 2, SECOND * 4, SECOND * 5]);
        backoff.reset();
        assert_eq!(backoff.wait_with(None, 0.0), SECOND / 2);
        let mut long = Backoff::new(SECOND, SECOND * 5);
        for _ in 0..100 {
            assert!(long.wait(None) <= SECOND * 5);
        }
    }

    #[test]
    fn nobody_comes_again_before_the_time_that_was_asked_for() {
        let mut backoff = Backoff::new(SECOND, SECOND * 5);
        assert_eq!(backoff.wait_with(Some(SECOND * 20), 0.0), SECOND * 20);
    }
}
