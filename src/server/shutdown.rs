//! Stopping without losing a call.
//!
//! API servers keep connections to a webhook open and do not repeat a call whose connection was
//! closed under it. So the process first says that it is not ready and goes on serving, while
//! Kubernetes takes it out of the service; then it asks for each connection to be closed with the
//! answer it gives; and only then closes what is left.

use tokio::sync::watch;

/// How far stopping has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not stopping.
    Serving,
    /// Not ready any more; otherwise as before.
    Leaving,
    /// Every HTTP/1.1 answer asks the client to close the connection and take another replica.
    Shedding,
    /// No new connections; those that have yet to send a request may.
    Closing,
    /// Idle connections are closed.
    Draining,
}

/// The phase, told to everyone.
#[derive(Debug)]
pub struct Shutdown(watch::Sender<Phase>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Shutdown {
    /// Goes on to `phase`; never back.
    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|current| {
            let later = phase > *current;
            *current = phase.max(*current);
            later
        });
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until `phase` is reached.
    pub async fn reached(&self, phase: Phase) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|now| *now >= phase).await;
    }
}
