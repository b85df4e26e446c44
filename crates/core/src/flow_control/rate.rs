//! The rate of requests, in requests per second.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

/// A rate with a burst. Time never goes back here.
pub struct RequestRate {
    limiter: RateLimiter<NotKeyed, InMemoryState, GivenTime, NoOpMiddleware<Duration>>,
    time: GivenTime,
}

impl RequestRate {
    /// A rate of at most `rate` in a second, and `burst` at once after a quiet time; at least one of each.
    pub fn new(rate: u32, burst: u32) -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(number(rate)).allow_burst(number(burst));
        let time = GivenTime::default();
        Self {
            limiter: RateLimiter::direct_with_clock(quota, time.clone()),
            time,
        }
    }

    /// Takes one.
    ///
    /// # Errors
    ///
    /// None is left: the moment from which on there is one again.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let now = self.time.pass_to(now);
        let taken = self.limiter.check();
        taken.map_err(|later| now.saturating_add(later.wait_time_from(now)))
    }
}

impl std::fmt::Debug for RequestRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestRate").finish_non_exhaustive()
    }
}

/// The time that the caller has given last, in nanoseconds.
#[derive(Debug, Clone, Default)]
struct GivenTime(Arc<AtomicU64>);

impl GivenTime {
    fn pass_to(&self, now: Duration) -> Duration {
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        // Callers read the clock before they take the lock, so a later call may bring an earlier
        // time.
        let latest = self.0.fetch_max(nanoseconds, Ordering::Relaxed);
        Duration::from_nanos(latest.max(nanoseconds))
    }
}

impl Clock for GivenTime {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_the_rate_holds() {
        let mut rate = RequestRate::new(10, 3);
        let start = Duration::from_secs(5);
        for _ in 0..3 {
            assert_eq!(rate.take(start), Ok(()));
        }
        let later = rate.take(start).unwrap_err();
        assert_eq!(later, start + Duration::from_millis(100));
        assert_eq!(rate.take(later), Ok(()));
        assert!(
            rate.take(start).is_err(),
            "a clock that goes back gives nothing"
        );
    }
}
