//! One rate of requests for all clusters, so that a burst on a thousand of them does not become
//! the API server's trouble.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

/// How often what can wait looks whether it is its turn.
const LOOK: Duration = Duration::from_millis(20);

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

    /// Waits until others leave half of the burst unused, and takes its place only then: for what
    /// can wait.
    pub async fn pass_last(&self) {
        while !self.take_spare(Instant::now()) {
            sleep(self.interval.max(LOOK)).await;
        }
    }

    /// Nobody passes for so long: the API server asked for patience.
    pub fn pause(&self, time: Duration) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = (*next).max(Instant::now() + time + self.burst);
    }

    fn take_spare(&self, now: Instant) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due = (*next).max(now);
        let is_spare = due.duration_since(now) <= self.burst / 2;
        if is_spare {
            *next = due + self.interval;
        }
        is_spare
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
    async fn what_can_wait_passes_after_everything_else() {
        let limiter = Limiter::new(10, 10);
        let start = Instant::now();
        for _ in 0..6 {
            limiter.pass_last().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..4 {
            limiter.pass().await;
        }
        assert_eq!(
            start.elapsed(),
            Duration::ZERO,
            "half of the burst was left"
        );
        limiter.pass_last().await;
        assert!(start.elapsed() >= Duration::from_millis(500));
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
