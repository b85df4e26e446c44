//! The readers of one watch: each gets what the watch brings, from a beginning of a list on.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::selection::WatchEvent;

/// A reader's function for events. It must not wait, as all other readers would wait with it.
pub(super) type Take = Box<dyn FnMut(&WatchEvent<&RawValue>) + Send>;

/// The readers of a watch.
#[derive(Default)]
pub(super) struct Readers {
    all: Mutex<Vec<WatchReader>>,
    /// The number of readers that have joined, by which they are told apart.
    numbers: AtomicU64,
    joined: Notify,
}

struct WatchReader {
    id: u64,
    metadata_only: bool,
    /// No list has begun since the reader joined. Until then it gets nothing, because the
    /// rest of a list would look like a whole one.
    is_new: bool,
    take: Take,
}

impl Readers {
    /// Adds a reader; returns the number by which it leaves.
    pub(super) fn join(&self, metadata_only: bool, take: Take) -> u64 {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.all.lock().push(WatchReader {
            id,
            metadata_only,
            is_new: true,
            take,
        });
        self.joined.notify_one();
        id
    }

    /// Removes a reader.
    pub(super) fn leave(&self, id: u64) {
        self.all.lock().retain(|reader| reader.id != id);
    }

    /// Returns whether no reader needs more than the objects' metadata.
    pub(super) fn need_metadata_only(&self) -> bool {
        self.all.lock().iter().all(|reader| reader.metadata_only)
    }

    /// Tells every reader what has happened.
    pub(super) fn tell(&self, event: &WatchEvent<&RawValue>) {
        for reader in self.all.lock().iter_mut() {
            reader.is_new &= !matches!(event, WatchEvent::Begun);
            if !reader.is_new {
                (reader.take)(event);
            }
        }
    }

    /// Waits until there is a reader for which a list has to begin.
    pub(super) async fn newcomer(&self) {
        while !self.all.lock().iter().any(|reader| reader.is_new) {
            self.joined.notified().await;
        }
    }
}
