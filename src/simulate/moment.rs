//! Virtual time, and clocks that may be wrong.

use k8s_openapi::jiff::Timestamp;

use crate::quantity::nearest_whole;
use crate::reconcile::observed::clock_skew::ClockSkew;
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
}

/// The seconds between two renewals of Leases, whatever else a process does.
const RENEWED_S: f64 = 5.0;

/// The clock of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScalerClock {
    /// Seconds by which it is ahead.
    pub ahead_s: f64,
    skew: ClockSkew,
    /// The time of the API server's last answer.
    answered: Option<Moment>,
}

impl ScalerClock {
    /// Hears what time it is by the API server's clock, as every answer of that says.
    pub fn hear(&mut self, now: Moment) {
        let own = now.epoch_seconds() + self.ahead_s;
        // The header `Date` has whole seconds.
        self.skew.note_answer(now.epoch_seconds().floor(), own, own);
        self.answered = Some(now);
    }

    /// Hears it by the renewal of Leases, if that is due.
    pub fn renew(&mut self, now: Moment) {
        if self.answered.is_none_or(|at| now.since(at) >= RENEWED_S) {
            self.hear(now);
        }
    }

    /// The time by this clock, in seconds since 1970.
    pub fn seconds(&self, now: Moment) -> f64 {
        now.epoch_seconds() + self.beyond_s()
    }

    /// The time by this clock, in the form of snapshots.
    pub fn text(&self, now: Moment) -> String {
        // In whole milliseconds, as moments are.
        let beyond_s = self.beyond_s();
        let (ahead, behind) = (Moment::at(beyond_s), Moment::at(-beyond_s));
        let shown = Moment((now.0 + ahead.0).saturating_sub(behind.0));
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
        let milliseconds = (shown.epoch_seconds() * 1000.0).round() as i64;
        let date = Timestamp::from_millisecond(milliseconds);
        date.map(|date| date.to_string()).unwrap_or_default()
    }

    /// Seconds by which it is ahead of the API server's clock without knowing it.
    fn beyond_s(&self) -> f64 {
        self.ahead_s - self.skew.ahead_s()
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
