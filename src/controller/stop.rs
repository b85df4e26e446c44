//! Waiting to be told to stop.

use tokio::sync::watch;

/// Waits to be told to stop. Nobody left to tell is the same.
pub async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
