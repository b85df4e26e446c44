//! The fence: every write asks it first, so that writes are sent only while the Lease is held.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::reconcile::ownership::lease::trust::{self, Fenced};

/// Knows for which shards this process may write, and until when.
#[derive(Debug, Clone)]
pub struct Fence {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<FenceState>,
    held: watch::Sender<Vec<u32>>,
}

#[derive(Debug, Default)]
struct FenceState {
    /// Until when each shard's Lease is trusted.
    until: BTreeMap<u32, Instant>,
    /// The number of writes that are under way, by shard.
    writing: BTreeMap<u32, u32>,
}

/// A write that is under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Writing {
    inner: Arc<Inner>,
    shard: u32,
}

impl Default for Fence {
    fn default() -> Self {
        let inner = Inner {
            state: Mutex::default(),
            held: watch::Sender::new(Vec::new()),
        };
        Self {
            inner: Arc::new(inner),
        }
    }
}

impl Fence {
    /// Sets which shards are held. The fence closes at once for shards that are not named.
    pub fn set(&self, until: BTreeMap<u32, Instant>) {
        let shards: Vec<u32> = until.keys().copied().collect();
        self.inner.lock().until = until;
        // Each renewal comes here; it changes only the times, of which nobody has to hear.
        self.inner.held.send_if_modified(|held| {
            let changed = *held != shards;
            *held = shards;
            changed
        });
    }

    /// The shards that are held, as a channel that reports changes.
    pub fn held(&self) -> watch::Receiver<Vec<u32>> {
        self.inner.held.subscribe()
    }

    /// Begins a write that takes at most `longest`, unless the Lease may end before it.
    pub fn begin(&self, shard: u32, longest: Duration) -> Result<Writing, Fenced> {
        let mut state = self.inner.lock();
        let until = state.until.get(&shard);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        trust::may_begin(shard, left, longest)?;
        *state.writing.entry(shard).or_default() += 1;
        drop(state);
        Ok(Writing {
            inner: self.inner.clone(),
            shard,
        })
    }

    /// Whether a write for the shard is under way.
    pub fn is_busy(&self, shard: u32) -> bool {
        self.inner.lock().writing.contains_key(&shard)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, FenceState> {
        // A panic elsewhere leaves the maps consistent, because every change of them is a single
        // step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if let Some(count) = state.writing.get_mut(&self.shard) {
            *count -= 1;
            if *count == 0 {
                state.writing.remove(&self.shard);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn held(seconds: u64) -> BTreeMap<u32, Instant> {
        BTreeMap::from([(3, Instant::now() + Duration::from_secs(seconds))])
    }

    #[test]
    fn nothing_is_written_without_a_lease_or_when_it_may_end_first() {
        let fence = Fence::default();
        assert_eq!(fence.begin(3, SECOND).unwrap_err(), Fenced::NotHeld(3));
        fence.set(held(100));
        assert!(fence.begin(3, SECOND).is_ok());
        assert_eq!(fence.begin(4, SECOND).unwrap_err(), Fenced::NotHeld(4));
        assert!(matches!(
            fence.begin(3, SECOND * 200),
            Err(Fenced::TooLate { shard: 3, .. })
        ));
        fence.set(BTreeMap::new());
        assert_eq!(fence.begin(3, SECOND).unwrap_err(), Fenced::NotHeld(3));
    }

    #[test]
    fn a_shard_is_busy_until_its_last_write_ends() {
        let fence = Fence::default();
        fence.set(held(100));
        let (first, second) = (
            fence.begin(3, SECOND).unwrap(),
            fence.begin(3, SECOND).unwrap(),
        );
        fence.set(BTreeMap::new());
        drop(first);
        assert!(fence.is_busy(3));
        drop(second);
        assert!(!fence.is_busy(3));
    }
}
