//! The busy count: how many clusters of a process are busy. The more there are, the less often each
//! of them is looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of clusters that are busy now.
#[derive(Debug, Clone, Default)]
pub struct BusyCount(Arc<AtomicUsize>);

impl BusyCount {
    /// Adds a cluster. Until its first look has shown whether it is busy, it counts as busy.
    pub fn join(&self) -> BusyPlace {
        self.0.fetch_add(1, Ordering::Relaxed);
        BusyPlace {
            busy_count: self.clone(),
            busy: true,
        }
    }

    /// The number of busy clusters.
    pub fn number(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A cluster's part in the busy count; the cluster is no longer counted once this is dropped.
#[derive(Debug)]
pub struct BusyPlace {
    busy_count: BusyCount,
    busy: bool,
}

impl BusyPlace {
    /// Records whether the cluster is busy, and returns the number of busy clusters.
    pub fn note(&mut self, busy: bool) -> usize {
        let count = &self.busy_count.0;
        match (self.busy, busy) {
            (false, true) => drop(count.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(count.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        self.busy = busy;
        self.busy_count.number()
    }
}

impl Drop for BusyPlace {
    fn drop(&mut self) {
        self.note(false);
    }
}

#[cfg(test)]
mod tests {
    use crate::controller::busy_count::*;

    #[test]
    fn the_busy_are_counted_once_each() {
        let busy_count = BusyCount::default();
        assert_eq!(busy_count.number(), 0);
        let (mut one, two) = (busy_count.join(), busy_count.join());
        assert_eq!(busy_count.number(), 2, "until it is known otherwise");
        assert_eq!(one.note(true), 2);
        assert_eq!(one.note(false), 1);
        assert_eq!(one.note(false), 1);
        drop(two);
        assert_eq!(busy_count.number(), 0);
        assert_eq!(one.note(true), 1);
        drop(one);
        assert_eq!(busy_count.number(), 0);
    }
}
