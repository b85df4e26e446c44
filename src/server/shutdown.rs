//! Stopping without losing a call.
//!
//! API servers keep connections to a webhook open and do not repeat a call whose connection was
//! closed under it. So the process first becomes unready and continues to serve, while Kubernetes
//! removes it from the Service; then it asks clients to close each connection with its next answer;
//! and only then it closes the remaining connections.

use tokio::sync::watch;

/// The phases of stopping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not stopping.
    #[default]
    Serving,
    /// Unready; otherwise as before.
    Unready,
    /// Every HTTP/1.1 answer asks the client to close the connection and take another replica.
    Shedding,
    /// No new connections; existing ones may still send a request.
    Closing,
    /// Idle connections are closed.
    Draining,
}

/// The phase, with notification of changes.
#[derive(Debug, Default)]
pub struct Shutdown(watch::Sender<Phase>);

impl Shutdown {
    /// Advances to `phase`; never goes back.
    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|current| {
            let later = phase > *current;
            *current = phase.max(*current);
            later
        });
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until `phase` is reached.
    pub async fn reached(&self, phase: Phase) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|now| *now >= phase).await;
    }
}
