//! Waiting for the signal to stop.

use tokio::sync::watch;

/// Waits for the signal to stop. A sender that is gone counts as the signal.
pub async fn asked_to_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
