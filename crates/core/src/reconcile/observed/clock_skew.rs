//! The difference between the own clock and the API server's, as its answers show.
//!
//! Pods say when they were created, and since when they wait, by the clock of the API server. A process
//! whose clock is a few minutes ahead would take a new pod for one that has waited for minutes, give it
//! up, and make another one, as fast as it can. Each answer of the API server says in its header `Date`
//! when it was given, in whole seconds (RFC 9110, 6.6.1), so that the difference is known as well as
//! the answer was quick.

/// An answer that differs by no more seconds from what is known changes nothing.
// Time then passes without jumps, and clocks that are kept in step do not differ.
const TOLERATED_S: f64 = 2.0;

/// The time by which a clock is ahead of the API server's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClockSkew {
    ahead_s: f64,
}

impl ClockSkew {
    /// Takes in an answer that the API server dates to `date`, while by the own clock it was asked for
    /// at `asked` and came at `came`; all in seconds since 1970. What is known changes by no more than
    /// the answer proves.
    pub fn note_answer(&mut self, date: f64, sent_at: f64, arrived_at: f64) {
        let (least, most) = (sent_at - (date + 1.0), arrived_at - date);
        let tolerated = least - TOLERATED_S..=most + TOLERATED_S;
        // The own clock was set back meanwhile if `most` is less: the next answer says more.
        if least <= most && !tolerated.contains(&self.ahead_s) {
            self.ahead_s = self.ahead_s.clamp(least, most);
        }
    }

    /// Seconds by which the clock is ahead; negative if it is behind, and 0 if it is in step.
    pub fn ahead_s(self) -> f64 {
        self.ahead_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_768_392_000.0;

    fn after(all: &[(f64, f64, f64)]) -> f64 {
        let mut skew = ClockSkew::default();
        for (date, sent_at, arrived_at) in all {
            skew.note_answer(NOW + date, NOW + sent_at, NOW + arrived_at);
        }
        skew.ahead_s()
    }

    #[test]
    fn clocks_in_step_differ_by_nothing() {
        let all = [(0.0, 0.9, 1.1), (5.0, 4.2, 5.3), (9.0, 9.9, 40.0)];
        assert!(after(&all).abs() < 1e-9);
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_known_as_well_as_the_answer_was_quick() {
        let ahead = after(&[(0.0, 600.0, 600.2)]);
        assert!((598.9..=600.3).contains(&ahead), "{ahead}");
        let behind = after(&[(0.0, -600.0, -599.8)]);
        assert!((-601.1..=-599.7).contains(&behind), "{behind}");
        // It is not known when a slow answer was given.
        assert!(after(&[(0.0, -30.0, 20.0)]).abs() < 1e-9);
    }

    #[test]
    fn answers_that_agree_change_nothing() {
        let first = (0.0, 600.0, 600.2);
        let more = [first, (1.0, 601.7, 601.9), (9.0, 609.0, 640.0)];
        assert!((after(&more) - after(&[first])).abs() < 1e-9);
    }

    #[test]
    fn a_clock_that_is_set_right_is_believed_again() {
        let ahead = after(&[(0.0, 600.0, 600.2), (5.0, 5.0, 5.2)]);
        assert!(ahead.abs() <= 1.1, "{ahead}");
    }
}
