//! One rate of requests for all clusters, so that a burst on a thousand of them does not become
//! the API server's trouble.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Lets `rate` requests a second pass, and `burst` at once after a quiet time.
#[derive(Debug)]
pub struct Limiter {
    interval: Duration,
    burst: Duration,
    /// When the request after those that were let through would be due.
    next: Mutex<Instant>,
}

impl Limiter {
    /// `rate` and `burst` are at least one.
    pub fn new(rate: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / rate.max(1);
        Self {
            interval,
            burst: interval * burst.max(1),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Waits for its turn.
    pub async fn pass(&self) {
        let due = self.reserve(Instant::now());
        sleep_until(due).await;
    }

    /// Nobody passes for so long: the API server asked for patience.
    pub fn pause(&self, time: Duration) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = (*next).max(Instant::now() + time + self.burst);
    }

    fn reserve(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due = (*next).max(now);
        *next = due + self.interval;
        due.checked_sub(self.burst).map_or(now, |due| due.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let limiter = Limiter::new(10, 5);
        let start = Instant::now();
        for _ in 0..5 {
            limiter.pass().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            limiter.pass().await;
        }
        let took = start.elapsed().as_millis();
        assert!((1_900..=2_000).contains(&took), "{took} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_everybody() {
        let limiter = Limiter::new(10, 5);
        limiter.pause(Duration::from_secs(3));
        let start = Instant::now();
        limiter.pass().await;
        assert!(start.elapsed() >= Duration::from_secs(3));
    }
}
