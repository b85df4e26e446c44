//! Conclusions from two reports of the memory in use on a Ray node: the pace, and whether the
//! cluster is looked at at once.

use std::ops::RangeInclusive;

use crate::snapshot::gcs::MemoryInUse;

/// The share of its memory, in percent, from which on a node is worth a look at once.
const WORTH_A_LOOK: i64 = 80;

/// Seconds for which the pace is taken to last.
const SOON_S: i64 = 10;

/// The times between two reports, in seconds, from which a pace follows.
const PACE_S: RangeInclusive<f64> = 1.0..=60.0;

/// A report, with what follows from the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownMemory {
    /// The memory in use, as snapshots have it.
    pub in_use: MemoryInUse,
    /// The time of the report, by the node's own clock, in seconds.
    pub node_time: f64,
}

impl KnownMemory {
    /// A report of so many bytes, made at `node_time` by the node's clock and heard `now`, with the
    /// pace since the report before. Clocks of nodes may say anything.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "a pace need not be exact")]
    pub fn of(bytes: i64, node_time: f64, previous: Option<&Self>, now: f64) -> Self {
        let since =
            previous.map(|previous| (previous.in_use.bytes, node_time - previous.node_time));
        let since = since.filter(|(_, seconds)| PACE_S.contains(seconds));
        let pace = since.map_or(0.0, |(then, seconds)| {
            bytes.saturating_sub(then) as f64 / seconds
        });
        Self {
            in_use: MemoryInUse {
                bytes,
                rise_per_s: pace.max(0.0) as i64,
                at: now,
            },
            node_time,
        }
    }

    /// Detects a node with so much memory that is nearly full, or soon will be.
    pub fn is_worth_a_look(&self, total: i64) -> bool {
        let rise = self.in_use.rise_per_s.saturating_mul(SOON_S);
        let soon = rise.saturating_add(self.in_use.bytes);
        soon.saturating_mul(100) >= total.saturating_mul(WORTH_A_LOOK)
    }
}
