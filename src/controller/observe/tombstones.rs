//! Tombstones of RayClusters that were deleted lately, so that an answer that arrives late does not
//! bring one back. Pure.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The most tombstones that are kept.
// Fewer clusters are deleted while a request is under way.
const MOST: usize = 1024;

/// By UID, the resource version as of which the object is gone.
#[derive(Default)]
pub(super) struct Tombstones {
    versions: HashMap<Arc<str>, u64>,
    order: VecDeque<Arc<str>>,
}

impl Tombstones {
    /// Records that an object is gone as of a version.
    pub(super) fn put(&mut self, uid: Arc<str>, version: u64) {
        if self.versions.insert(uid.clone(), version).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
        }
    }

    /// Returns whether this version of an object is older than its deletion, so that it has to be ignored.
    pub(super) fn hold(&self, uid: &str, version: &str) -> bool {
        let deleted_at = self.versions.get(uid);
        let version = version.parse::<u64>();
        // UIDs are never used again. A version newer than the list in which the object was missing
        // shows that the list was outdated.
        deleted_at.is_some_and(|deleted_at| version.is_ok_and(|version| version <= *deleted_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_the_end_is_distinguished_from_what_came_after() {
        let mut tombstones = Tombstones::default();
        tombstones.put("u".into(), 7);
        assert!(tombstones.hold("u", "6") && tombstones.hold("u", "7"));
        assert!(!tombstones.hold("u", "8") && !tombstones.hold("v", "6"));
    }

    #[test]
    fn they_do_not_add_up() {
        let mut tombstones = Tombstones::default();
        for number in 0..MOST * 2 {
            tombstones.put(number.to_string().into(), 1);
        }
        assert_eq!(
            (tombstones.versions.len(), tombstones.order.len()),
            (MOST, MOST)
        );
    }
}
