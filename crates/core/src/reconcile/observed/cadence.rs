//! The interval until the next look at a cluster if nothing happens before.

use crate::reconcile::settings::Pace;

/// The next look begins no sooner than this after the last one began, in milliseconds, even if the
/// objects have changed, so that a thousand pods that start do not cause a thousand looks.
pub const TOGETHER_MS: u64 = 50;

/// The seconds until the next look at a busy cluster, given the number of busy clusters that this
/// process scales.
pub fn busy_s(busy: usize, pace: &Pace) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    // A thousand clusters that all wait for pods must not delay each other's rounds.
    let shared = busy as f64 / pace.busy_per_s;
    shared.clamp(pace.busy_s, pace.calm_s.max(pace.busy_s))
}

/// The seconds until the next look at a cluster in which nothing goes on. `last_change` is when
/// anything in the cluster last changed
/// ([`RoundMemory::changed_at`](crate::reconcile::RoundMemory::changed_at)); it and `now` are in
/// seconds since 1970.
pub fn quiet_s(last_change: f64, now: f64, pace: &Pace) -> f64 {
    // The interval grows with the time for which the cluster has been quiet beyond the limit, so
    // that looks become rarer gradually.
    let quiet = (now - last_change - pace.long_s).max(0.0);
    let grown = pace.calm_s * (1.0 + quiet / pace.long_s.max(1.0));
    grown.clamp(pace.calm_s, pace.idle_s.max(pace.calm_s))
}

#[expect(clippy::float_cmp, reason = "given, not computed")]
#[cfg(test)]
mod tests {
    use crate::reconcile::observed::cadence::*;

    #[test]
    fn looks_get_rarer_only_where_nothing_moves_for_long() {
        let pace = Pace::default();
        let next = |quiet| quiet_s(1000.0, 1000.0 + quiet, &pace);
        assert_eq!(next(0.0), 1.0);
        assert_eq!(next(300.0), 1.0);
        assert_eq!(next(600.0), 2.0);
        assert_eq!(next(9e9), 5.0);
        assert_eq!(next(-50.0), 1.0, "a clock that went back");
    }

    #[test]
    fn the_busy_share_the_looks_but_each_has_one_a_second() {
        let pace = Pace::default();
        let next = |busy| busy_s(busy, &pace);
        assert_eq!(next(1), 0.25);
        assert_eq!(next(100), 0.25);
        assert_eq!(next(200), 0.5);
        assert_eq!(next(100_000), 1.0);
    }
}
