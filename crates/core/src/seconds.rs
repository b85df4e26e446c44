//! Arithmetic of times that are numbers of seconds, and reading them.

use std::time::Duration;

/// The most seconds by which objects of a watch may be older than the stored ones: so long after the last
/// message the watch has been found dead, and another list could have been read. A watch that was silent for
/// longer decides nothing.
pub const WATCH_LAG_S: f64 = 155.0;

/// Waits after failures in a row, each twice as long as the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// The wait after the first failure, in seconds.
    pub first_s: f64,
    /// The longest wait, in seconds.
    pub longest_s: f64,
}

impl Retry {
    /// Waits from one minute up to ten, for what another object may end at any time.
    pub const UP_TO_TEN_MINUTES: Self = Self {
        first_s: 60.0,
        longest_s: 600.0,
    };

    /// Waits from one minute up to an hour, for what costs something each time that it fails.
    pub const UP_TO_AN_HOUR: Self = Self {
        first_s: 60.0,
        longest_s: 3600.0,
    };

    /// The wait after so many failures in a row, in seconds.
    pub fn wait_s(self, failures: u32) -> f64 {
        // A shift by 32 bits would panic, and 16 doublings exceed any longest wait.
        let doublings = failures.saturating_sub(1).min(16);
        (self.first_s * f64::from(1_u32 << doublings)).min(self.longest_s)
    }

    /// A part of that wait, from a half to the whole by a `random` number from 0 to 1, so that clients which failed at
    /// the same moment do not come back together.
    pub fn wait(self, failures: u32, random: f64) -> Duration {
        let part = 0.5 + random.clamp(0.0, 1.0) / 2.0;
        Duration::from_secs_f64(self.wait_s(failures) * part)
    }
}

/// True if less than `span_s` seconds have passed since a moment. One ahead of the clock, which was set back
/// since, has passed: it would hold for as much longer.
pub fn is_recent(moment: f64, span_s: f64, now: f64) -> bool {
    (0.0..span_s).contains(&(now - moment))
}

/// Seconds as whole milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating, and never negative"
)]
pub fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// The second in which a moment is.
#[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
pub fn second_of(moment: f64) -> i64 {
    moment as i64
}

/// A duration as Go writes it (`1m30s`, `1.5s`, `500ms`), in units of so many seconds.
pub fn go_duration(text: &str, units: &[(&str, f64)]) -> Option<Duration> {
    let is_number = |char: char| char.is_ascii_digit() || char == '.';
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|char| !is_number(char))?);
        let (unit, next) = tail.split_at(tail.find(is_number).unwrap_or(tail.len()));
        let (_, seconds) = units.iter().find(|(name, _)| *name == unit)?;
        let seconds = number.parse::<f64>().ok()? * seconds;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = next;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let retry = Retry {
            first_s: 60.0,
            longest_s: 400.0,
        };
        let waits = [0, 1, 2, 3, 4, u32::MAX].map(|failures| retry.wait_s(failures).to_string());
        assert_eq!(waits, ["60", "60", "120", "240", "400", "400"]);
    }

    #[test]
    fn waits_are_spread_from_a_half_to_the_whole() {
        let retry = Retry {
            first_s: 2.0,
            longest_s: 10.0,
        };
        let waits = [(1, 0.0), (1, 1.0), (2, 0.5), (9, 0.0), (9, 7.0)];
        let waits = waits.map(|(failures, random)| retry.wait(failures, random));
        assert_eq!(waits, [1, 2, 3, 5, 10].map(Duration::from_secs));
    }

    #[test]
    fn what_is_too_small_or_too_large_saturates() {
        let seconds = [-1.0, 1.5, f64::INFINITY];
        assert_eq!(seconds.map(milliseconds), [0, 1500, u64::MAX]);
    }
}
