//! Virtual time.

use k8s_openapi::jiff::Timestamp;

use crate::quantity::nearest_whole;
use crate::snapshot::moment;

/// The start of every simulation, in seconds since 1970: 2026-01-14T12:00:00Z. The date is fixed so
/// that equal runs give equal texts.
const EPOCH_S: f64 = 1_768_392_000.0;

/// The hour of that, in UTC.
pub const START_HOUR: i64 = 12;

/// A moment of virtual time, in whole milliseconds since the beginning. Whole numbers make the
/// order of events the same on every machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The beginning.
    pub const START: Self = Self(0);

    /// The moment that many seconds after the beginning; negative numbers are the beginning.
    pub fn at(seconds: f64) -> Self {
        Self::START.plus(seconds)
    }

    /// The moment that many seconds later, to the nearest millisecond.
    #[must_use]
    pub fn plus(self, seconds: f64) -> Self {
        let later = nearest_whole(seconds * 1000.0);
        Self(self.0.saturating_add(later))
    }

    /// The seconds since the beginning.
    pub fn seconds(self) -> f64 {
        let milliseconds = self.0 as f64;
        milliseconds / 1000.0
    }

    /// The seconds since an earlier moment; 0 if it is later.
    pub fn since(self, earlier: Self) -> f64 {
        Self(self.0.saturating_sub(earlier.0)).seconds()
    }

    /// The next moment that is a whole multiple of so many seconds, and later than this one.
    #[must_use]
    pub fn next_multiple(self, seconds: f64) -> Self {
        let step = Self::at(seconds).0.max(1);
        Self((self.0 / step).saturating_add(1).saturating_mul(step))
    }

    /// The seconds since 1970.
    pub fn epoch_seconds(self) -> f64 {
        EPOCH_S + self.seconds()
    }

    /// The date, as Kubernetes writes it: in whole seconds that have passed.
    pub fn timestamp(self) -> String {
        moment(self.epoch_seconds().floor())
    }

    /// The date by a clock that is so many seconds ahead, in the form of snapshots.
    pub fn text(self, ahead_s: f64) -> String {
        // In whole milliseconds, as moments are.
        let (ahead, behind) = (Self::at(ahead_s), Self::at(-ahead_s));
        let shown = Self((self.0 + ahead.0).saturating_sub(behind.0));
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
        let milliseconds = (shown.epoch_seconds() * 1000.0).round() as i64;
        let date = Timestamp::from_millisecond(milliseconds);
        date.map(|date| date.to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_milliseconds() {
        assert_eq!(Moment::at(0.1).plus(0.2), Moment::at(0.3));
        assert_eq!(Moment::at(-3.0), Moment::START);
        assert_eq!(Moment::at(1.5).next_multiple(1.0), Moment::at(2.0));
        assert_eq!(Moment::at(2.0).next_multiple(1.0), Moment::at(3.0));
        assert_eq!(Moment::at(1.2).timestamp(), "2026-01-14T12:00:01Z");
        assert!((Moment::at(5.0).since(Moment::at(1.5)) - 3.5).abs() < 1e-9);
    }
}
