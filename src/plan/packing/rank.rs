//! The order of nodes by how well they suit the requests that they would take.

use std::cmp::{Ordering, Reverse};

use crate::plan::packing::fit::Score;

/// The preference between nodes of equal score, by group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preference {
    /// 1 unless the group's pods recently failed to appear.
    pub(crate) recoverable: f64,
    /// The `priority` of the group.
    pub(crate) priority: i64,
    /// 1 unless the group's pods ever failed to appear.
    pub(crate) available: f64,
}

/// The rank of a node. The node with the greatest rank is picked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rank {
    pub(crate) score: Score,
    pub(crate) preference: Preference,
    /// The position in the list, where the earlier node wins.
    pub(crate) position: Reverse<usize>,
}

impl Rank {
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let (own, their) = (&self.preference, &other.preference);
        self.score
            .order(&other.score)
            .then_with(|| own.recoverable.total_cmp(&their.recoverable))
            // As in Ray, a priority decides between equal scores only, and never lets a worse node
            // win.
            .then(own.priority.cmp(&their.priority))
            .then_with(|| own.available.total_cmp(&their.available))
            .then(self.position.cmp(&other.position))
    }
}

/// A class of nodes with the rank of its first node, as an entry of a heap.
#[derive(Debug)]
pub(crate) struct Ranked {
    pub(crate) rank: Rank,
    pub(crate) class: usize,
    pub(crate) version: u32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.order(&other.rank)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
