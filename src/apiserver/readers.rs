//! The readers of one watch: each gets what the watch brings, from a beginning of a list on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::selection::WatchEvent;

/// A reader's function for events. It must not wait, as all other readers would wait with it.
pub(super) type Take = Box<dyn FnMut(&WatchEvent<&RawValue>) + Send>;

/// The readers of a watch.
#[derive(Default)]
pub(super) struct Readers {
    all: Mutex<ReaderList>,
    joined: Notify,
}

#[derive(Default)]
struct ReaderList {
    readers: Vec<Reader>,
    joined: u64,
}

struct Reader {
    id: u64,
    metadata_only: bool,
    /// Whether no list has begun since the reader joined. Until then it gets nothing, because the
    /// rest of a list would look like a whole one.
    is_new: bool,
    take: Take,
}

impl Readers {
    /// Adds a reader; returns the number by which it leaves.
    pub(super) fn join(&self, metadata_only: bool, take: Take) -> u64 {
        let mut all = self.lock();
        all.joined += 1;
        let id = all.joined;
        all.readers.push(Reader {
            id,
            metadata_only,
            is_new: true,
            take,
        });
        drop(all);
        self.joined.notify_one();
        id
    }

    /// Removes a reader.
    pub(super) fn leave(&self, id: u64) {
        self.lock().readers.retain(|reader| reader.id != id);
    }

    /// Whether no reader needs more than the objects' metadata.
    pub(super) fn need_metadata_only(&self) -> bool {
        self.lock()
            .readers
            .iter()
            .all(|reader| reader.metadata_only)
    }

    /// Tells every reader what has happened.
    pub(super) fn tell(&self, event: &WatchEvent<&RawValue>) {
        for reader in &mut self.lock().readers {
            reader.is_new &= !matches!(event, WatchEvent::Begun);
            if !reader.is_new {
                (reader.take)(event);
            }
        }
    }

    /// Waits until there is a reader for which a list has to begin.
    pub(super) async fn newcomer(&self) {
        while !self.lock().readers.iter().any(|reader| reader.is_new) {
            self.joined.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReaderList> {
        // After a panic of a reader the list is as it was; the watch ends by it.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
