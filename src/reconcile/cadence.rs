//! When to look at a cluster again, if nothing happens before.

use super::settings::Pace;

/// Seconds until the next look. `last_change` is when anything of the cluster last moved
/// ([`Memory::changed_at`](super::Memory::changed_at)), both in seconds since 1970.
pub fn next_s(busy: bool, last_change: f64, now: f64, pace: &Pace) -> f64 {
    if busy {
        return pace.busy_s;
    }
    // As long again as it has been quiet beyond the limit: rarer little by little.
    let quiet = (now - last_change - pace.long_s).max(0.0);
    let grown = pace.calm_s * (1.0 + quiet / pace.long_s.max(1.0));
    grown.clamp(pace.calm_s, pace.idle_s.max(pace.calm_s))
}

#[cfg(test)]
mod tests {
    use super::next_s;
    use crate::reconcile::settings::Pace;

    #[test]
    #[expect(clippy::float_cmp, reason = "given, not computed")]
    fn looks_get_rarer_only_where_nothing_moves_for_long() {
        let pace = Pace::default();
        let next = |busy, quiet_s| next_s(busy, 1000.0, 1000.0 + quiet_s, &pace);
        assert_eq!(next(true, 9e9), 0.25);
        assert_eq!(next(false, 0.0), 1.0);
        assert_eq!(next(false, 300.0), 1.0);
        assert_eq!(next(false, 600.0), 2.0);
        assert_eq!(next(false, 9e9), 5.0);
        assert_eq!(next(false, -50.0), 1.0, "a clock that went back");
    }
}
