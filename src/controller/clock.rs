//! The clocks of the controller.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;

/// A wall clock, and a steady clock that never jumps.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock {
    /// Seconds since 1970.
    pub fn wall(self) -> f64 {
        #[expect(clippy::disallowed_methods, reason = "the shell's clock")]
        let now = SystemTime::now();
        now.duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64())
    }

    /// Seconds since some moment, by a clock that never jumps.
    pub fn steady(self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// The wall clock's time in RFC 3339.
    pub fn rfc3339(self) -> String {
        Self::timestamp().to_string()
    }

    /// The wall clock's time as Kubernetes writes it.
    pub fn timestamp() -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the shell's clock")]
        Timestamp::now()
    }
}

/// Tokio's clock for limiters, as the time since some moment.
#[derive(Debug, Clone, Copy)]
pub struct LimiterClock(tokio::time::Instant);

impl Default for LimiterClock {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl governor::clock::Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
