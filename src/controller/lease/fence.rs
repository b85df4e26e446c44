//! The fence: every write asks it first, so that writes are sent only while the Lease is held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use rayfit_core::reconcile::effects::failure::Failure;
use rayfit_core::reconcile::ownership::lease::trust;

/// Knows until when this process may write.
#[derive(Debug, Clone, Default)]
pub struct Fence(Arc<watch::Sender<FenceState>>);

/// The trust in the Lease, and the writes that rely on it.
#[derive(Debug, Default)]
pub struct FenceState {
    /// The time until which the Lease is trusted.
    until: Option<Instant>,
    /// The number of writes that are under way.
    writing: u32,
}

/// A write that is under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Writing(Fence);

impl Fence {
    /// Sets the time until which the Lease is trusted. Without one the fence closes at once.
    pub fn set(&self, until: Option<Instant>) {
        // Each renewal comes here; it changes only the time, of which nobody has to hear.
        self.0.send_if_modified(|state| {
            let previous = std::mem::replace(&mut state.until, until);
            previous.is_some() != until.is_some()
        });
    }

    /// A channel that reports when this process begins or ceases to lead.
    pub fn leads(&self) -> watch::Receiver<FenceState> {
        self.0.subscribe()
    }

    /// Returns whether this process leads now.
    pub fn is_leader(&self) -> bool {
        self.0.borrow().until.is_some()
    }

    /// Begins a write that takes at most `longest`.
    ///
    /// # Errors
    ///
    /// The Lease may end before the write.
    pub fn begin(&self, longest: Duration) -> Result<Writing, Failure> {
        let mut permitted = Ok(());
        // The check and the count are one step: a Lease is not given back between them.
        self.0.send_if_modified(|state| {
            let until = state.until;
            let remaining = until.map(|until| until.saturating_duration_since(Instant::now()));
            permitted = trust::may_begin(remaining, longest);
            state.writing += u32::from(permitted.is_ok());
            false
        });
        permitted.map(|()| Writing(self.clone()))
    }

    /// Returns whether a write is under way.
    pub fn is_writing(&self) -> bool {
        self.0.borrow().writing > 0
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.0.send_if_modified(|state| {
            state.writing -= 1;
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn refusal(fence: &Fence, longest: Duration) -> String {
        fence.begin(longest).unwrap_err().to_string()
    }

    #[test]
    fn nothing_is_written_without_a_lease_or_when_it_may_end_first() {
        let fence = Fence::default();
        assert!(refusal(&fence, SECOND).contains("another replica holds the Lease"));
        fence.set(Some(Instant::now() + SECOND * 100));
        assert!(fence.begin(SECOND).is_ok());
        assert!(refusal(&fence, SECOND * 200).contains("before the request could be done"));
        fence.set(None);
        assert!(refusal(&fence, SECOND).contains("another replica holds the Lease"));
    }

    #[test]
    fn only_a_change_of_the_leader_is_reported() {
        let fence = Fence::default();
        let leads = fence.leads();
        for (seconds, is_reported) in [(Some(100), true), (Some(200), false), (None, true)] {
            let mut leads = leads.clone();
            leads.mark_unchanged();
            fence.set(seconds.map(|seconds| Instant::now() + SECOND * seconds));
            drop(fence.begin(SECOND));
            assert_eq!(leads.has_changed().unwrap(), is_reported, "{seconds:?}");
        }
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
