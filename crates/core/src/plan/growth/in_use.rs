//! The memory that is really in use in a pod: when it is nearly full, and how much would do.
//!
//! Ray's memory monitor kills the work on a node that uses 95 % of its memory, and the kernel at 100 %.
//! Ray reports the use every five seconds, so what it will soon be counts, too. A pod that has grown
//! uses [`FILLED`] of its memory at the most, and grows again from [`NEAR`] on, so that it does not
//! grow and shrink in turn.

use crate::plan::growth::size::Size;
use crate::snapshot::gcs::{MemoryInUse, NodeState};

/// The share of a pod's memory in percent from which on it is nearly full.
const NEAR: i128 = 85;

/// The share of a pod's memory in percent that is in use at the most once its size is right.
const FILLED: i128 = 70;

/// Seconds for which the present pace is taken to last: two reports of Ray.
const SOON_S: i64 = 10;

/// A report that is older than these seconds says nothing: Ray has ceased to report.
const FRESH_S: f64 = 30.0;

/// Seconds by which a report may be ahead of the clock, because that was set back.
const SKEW_S: f64 = 5.0;

/// The memory in use in a pod, from a recent report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InUse {
    /// The bytes in use.
    pub(crate) bytes: i64,
    /// The bytes in use soon, at the present pace.
    pub(crate) soon: i64,
}

/// The CPU and memory that work on a Ray node has asked for.
pub(crate) fn logical_use(ray: &NodeState) -> Size {
    let used = |name: &str| {
        let total = ray.total_resources.get(name);
        let free = ray.available_resources.get(name);
        total.map_or(0.0, |total| total - free.copied().unwrap_or(0.0))
    };
    #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
    let memory = used("memory") as i64;
    Size {
        cpu: used("CPU"),
        memory,
    }
}

impl InUse {
    /// The memory in use by a report, if that is recent.
    pub(crate) fn of(report: MemoryInUse, now: f64) -> Option<Self> {
        // A tenant may report anything.
        let bytes = report.bytes.max(0);
        let rise = report.rise_per_s.max(0).saturating_mul(SOON_S);
        let is_fresh = (-SKEW_S..=FRESH_S).contains(&(now - report.at));
        is_fresh.then_some(Self {
            bytes,
            soon: bytes.saturating_add(rise),
        })
    }

    /// True for an amount of memory that is nearly full, or soon will be.
    pub(crate) fn fills(self, memory: i64) -> bool {
        // A tenant may report any number of bytes, a hundred times of which is beyond 64 bits.
        i128::from(self.soon) * 100 >= i128::from(memory) * NEAR
    }

    /// The memory that is right for it.
    pub(crate) fn right(self, base: i64) -> i64 {
        right(self.soon, base)
    }
}

/// The memory that is right for so many bytes in use: a whole multiple of the base size, as with
/// CPU.
pub(crate) fn right(bytes: i64, base: i64) -> i64 {
    let base = i128::from(base.max(1));
    let needed = (i128::from(bytes.max(0)) * 100 + FILLED - 1) / FILLED;
    // Memory that a pod leaves on its Kubernetes node is of use to other pods in whole base sizes only.
    let steps = ((needed + base - 1) / base).max(1);
    i64::try_from(steps * base).unwrap_or(i64::MAX)
}

/// The part of the right memory that a pod gets if it may have `most`: all of it, or all that the
/// resize limits allow, or else whole multiples of the base size.
pub(crate) fn fitting(right: i64, most: i64, (base, limit): (i64, i64)) -> i64 {
    let fits = right.min(most);
    if fits == right || fits == limit {
        fits
    } else {
        fits - fits.rem_euclid(base.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GI: i64 = 1 << 30;

    fn report(bytes: i64, rise_per_s: i64, at: f64) -> MemoryInUse {
        MemoryInUse {
            bytes,
            rise_per_s,
            at,
        }
    }

    #[test]
    fn a_pod_of_the_right_size_is_not_nearly_full() {
        for bytes in [1, GI / 2, GI * 7 / 10, GI, 5 * GI, 700 * GI] {
            let used = InUse::of(report(bytes, 0, 100.0), 100.0).unwrap();
            let right = used.right(GI);
            assert!(!used.fills(right), "{bytes}");
            assert_eq!(right % GI, 0);
            assert!(right == GI || used.bytes > (right - GI) * 7 / 10, "{bytes}");
        }
        let used = InUse::of(report(GI * 85 / 100 + 1, 0, 100.0), 100.0).unwrap();
        assert!(used.fills(GI));
        assert_eq!(used.right(GI), 2 * GI);
        assert!(
            !InUse::of(report(GI * 84 / 100, 0, 100.0), 100.0)
                .unwrap()
                .fills(GI)
        );
    }

    #[test]
    fn the_pace_counts_and_old_reports_do_not() {
        let climbs = InUse::of(report(GI / 2, GI / 10, 100.0), 100.0).unwrap();
        assert!(climbs.fills(GI));
        assert_eq!(climbs.right(GI), 3 * GI);
        assert_eq!(InUse::of(report(GI, 0, 100.0), 131.0), None);
        assert_eq!(InUse::of(report(GI, 0, 100.0), 94.0), None);
    }

    #[test]
    fn any_number_is_bounded() {
        let most = InUse::of(report(i64::MAX, i64::MAX, 0.0), 0.0).unwrap();
        assert_eq!(most.right(GI), i64::MAX);
        assert!(most.fills(i64::MAX));
        let least = InUse::of(report(i64::MIN, i64::MIN, 0.0), 0.0).unwrap();
        assert_eq!((least.bytes, least.right(0)), (0, 1));
        assert_eq!(InUse::of(report(0, 0, f64::NAN), 0.0), None);
    }

    #[test]
    fn room_is_taken_in_whole_steps() {
        let sizes = (GI, 4 * GI + 5);
        assert_eq!(fitting(3 * GI, 9 * GI, sizes), 3 * GI);
        assert_eq!(fitting(3 * GI, 2 * GI + 7, sizes), 2 * GI);
        assert_eq!(
            fitting(9 * GI, 4 * GI + 5, sizes),
            4 * GI + 5,
            "all that it may have"
        );
    }
}
