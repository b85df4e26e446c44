//! The clocks of the controller.

use std::time::{Duration, Instant};

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::apiserver::ServerTime;

/// A wall clock, which is the API server's where that is known, and a steady clock that never jumps.
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    time: ServerTime,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            time: ServerTime::default(),
        }
    }
}

impl Clock {
    /// A clock that goes by the API server's.
    pub fn of_server(time: ServerTime) -> Self {
        Self {
            time,
            ..Self::default()
        }
    }

    /// Seconds since 1970.
    pub fn wall(&self) -> f64 {
        self.time.now()
    }

    /// Seconds since some moment, by a clock that never jumps.
    pub fn steady(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// The wall clock's time in RFC 3339.
    pub fn rfc3339(&self) -> String {
        let since = SignedDuration::try_from_secs_f64(self.wall()).unwrap_or_default();
        Timestamp::from_duration(since)
            .unwrap_or_default()
            .to_string()
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
