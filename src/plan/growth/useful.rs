//! The size to which a pod grows for demand, CPU and memory separately.
//!
//! More work of the same kind often follows, so a pod grows up to its resize limits. But where the
//! work that is placed on it takes its memory, cores beyond what the work needs would stand idle
//! beside memory that is taken, while other pods on the Kubernetes node lack them.

use crate::plan::growth::size::Size;

/// Amounts of CPU that differ by less are the same: Ray keeps four decimals.
const SAME: f64 = 1e-4;

/// The part of `most` that is of use to a pod that needs `needed` for what runs in it and what was
/// placed on it, and that has `from`: all of the memory, and as many cores as such work can use
/// beside each other in that memory, in whole multiples of the base size, so that what stays free
/// on the Kubernetes node is of use to other pods.
pub(crate) fn useful(from: Size, most: Size, base: Size, needed: Size) -> Size {
    let step = base.cpu.ceil();
    if needed.memory <= 0 || step <= 0.0 {
        return most;
    }
    #[expect(clippy::cast_precision_loss, reason = "how often work fits in a pod")]
    let times = (most.memory / needed.memory).max(1) as f64;
    let cpu = ((needed.cpu * times - SAME) / step).ceil() * step;
    Size {
        cpu: cpu.max(from.cpu).min(most.cpu),
        memory: most.memory,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers")]

    use super::*;

    const GI: i64 = 1 << 30;

    /// The cores that a pod of 2 CPUs and 4 GiB gets.
    fn cores(most: (f64, i64), needed: (f64, i64)) -> f64 {
        let size = |(cpu, memory): (f64, i64)| Size {
            cpu,
            memory: memory * GI,
        };
        let base = size((2.0, 4));
        let found = useful(base, size(most), base, size(needed));
        assert_eq!(found.memory, most.1 * GI);
        found.cpu
    }

    #[test]
    fn no_core_stands_idle_beside_memory_that_is_taken() {
        assert_eq!(cores((16.0, 32), (8.0, 30)), 8.0);
        assert_eq!(cores((16.0, 64), (8.0, 30)), 16.0);
        assert_eq!(cores((16.0, 64), (3.0, 40)), 4.0);
        assert_eq!(cores((16.0, 32), (1.0, 10)), 4.0);
    }

    #[test]
    fn work_that_leaves_memory_may_be_joined_by_more() {
        assert_eq!(cores((8.0, 32), (1.0, 0)), 8.0);
        assert_eq!(cores((8.0, 32), (1.0, 2)), 8.0);
    }

    #[test]
    fn no_core_is_taken_away_and_none_given_above_the_limit() {
        assert_eq!(cores((2.0, 32), (1.0, 32)), 2.0);
        assert_eq!(cores((7.0, 32), (7.0, 32)), 7.0);
    }
}
