//! The fence: every write asks it first, so that writes are sent only while the Lease is held.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::reconcile::ownership::lease::trust::{self, Fenced};

/// Knows whether this process may write, and until when.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<FenceState>,
    leads: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct FenceState {
    /// The time until which the Lease is trusted.
    until: Option<Instant>,
    /// The number of writes that are under way.
    writing: u32,
}

/// A write that is under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Writing {
    inner: Arc<Inner>,
}

impl Fence {
    /// Sets until when the Lease is trusted. Without it the fence closes at once.
    pub fn set(&self, until: Option<Instant>) {
        self.inner.lock().until = until;
        // Each renewal comes here; it changes only the time, of which nobody has to hear.
        self.inner.leads.send_if_modified(|leads| {
            let leads_now = until.is_some();
            std::mem::replace(leads, leads_now) != leads_now
        });
    }

    /// Whether this process leads, as a channel that reports changes.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.inner.leads.subscribe()
    }

    /// Whether this process leads now.
    pub fn is_leader(&self) -> bool {
        *self.inner.leads.borrow()
    }

    /// Begins a write that takes at most `longest`.
    ///
    /// # Errors
    ///
    /// The Lease may end before the write.
    pub fn begin(&self, longest: Duration) -> Result<Writing, Fenced> {
        let mut state = self.inner.lock();
        let left = state
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        trust::may_begin(left, longest)?;
        state.writing += 1;
        drop(state);
        Ok(Writing {
            inner: self.inner.clone(),
        })
    }

    /// Whether a write is under way.
    pub fn is_writing(&self) -> bool {
        self.inner.lock().writing > 0
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, FenceState> {
        // A panic elsewhere leaves the state consistent, because every change of it is a single step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.inner.lock().writing -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_is_written_without_a_lease_or_when_it_may_end_first() {
        let fence = Fence::default();
        assert_eq!(fence.begin(SECOND).unwrap_err(), Fenced::NotHeld);
        fence.set(Some(Instant::now() + SECOND * 100));
        assert!(fence.begin(SECOND).is_ok());
        let late = fence.begin(SECOND * 200);
        assert!(matches!(late, Err(Fenced::TooLate { .. })));
        fence.set(None);
        assert_eq!(fence.begin(SECOND).unwrap_err(), Fenced::NotHeld);
    }

    #[test]
    fn it_is_busy_until_the_last_write_ends() {
        let fence = Fence::default();
        fence.set(Some(Instant::now() + SECOND * 100));
        let [first, second] = [(); 2].map(|()| fence.begin(SECOND).unwrap());
        fence.set(None);
        drop(first);
        assert!(fence.is_writing());
        drop(second);
        assert!(!fence.is_writing());
    }
}
