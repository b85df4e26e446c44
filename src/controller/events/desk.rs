//! The desk: what the announcers and the publisher share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::controller::events::outbox::Outbox;
use crate::controller::events::queued::{About, QueuedEvent};
use crate::controller::metrics::RoundMetrics;
use crate::reconcile::events::event::ClusterEvent;

/// The desk: what the announcers and the publisher share.
pub(super) struct Desk {
    pub(super) outbox: Mutex<Outbox>,
    pub(super) filled: Notify,
    pub(super) measures: RoundMetrics,
}

impl Desk {
    pub(super) fn put(&self, about: &About, event: &ClusterEvent) -> bool {
        let announcement = QueuedEvent {
            about: about.clone(),
            event: event.clone(),
        };
        let mut outbox = self.outbox();
        let is_queued = outbox.put(announcement);
        self.measures.events_left_out(outbox.count_left_out());
        drop(outbox);
        self.filled.notify_one();
        is_queued
    }

    pub(super) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // No code panics while it holds the lock, and the outbox is consistent at every moment.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
