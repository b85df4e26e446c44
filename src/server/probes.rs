//! The health port in a thread of its own.
//!
//! Kubernetes removes a pod that does not answer its probes from its Service, and kills it. So
//! probes are answered whatever the rest of the process does, with a thread, connections and an
//! accept loop of their own. A [`Pulse`](super::pulse::Pulse) shows that the rest still runs.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::health::{self, Health};
use super::listener::Listener;
use super::{ConnectionTimeouts, Shutdown};
use crate::supervisor::Supervisor;

/// Connections at once. An idle connection gives way to a new one.
const CONNECTIONS: u32 = 256;

/// Kubelets send their request at once and close; Prometheus connects again when its connection was
/// closed.
const TIMES: ConnectionTimeouts = ConnectionTimeouts {
    handshake: Duration::from_secs(2),
    head: Duration::from_secs(2),
    idle: Duration::from_secs(15),
    write: Duration::from_secs(5),
};

/// Listens at `address` and answers until the process ends.
pub(super) async fn serve(
    address: SocketAddr,
    health: Arc<Health>,
    supervisor: Supervisor,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // For metrics.
        .max_blocking_threads(1)
        .build()?;
    let (tell, bound) = oneshot::channel();
    std::thread::Builder::new()
        .name("health".to_owned())
        .spawn(move || {
            let answer = answer(address, health, tell);
            runtime.block_on(supervisor.watch("health and metrics", answer));
        })?;
    let address = bound.await??;
    tracing::info!(%address, "health and metrics");
    Ok(())
}

async fn answer(
    address: SocketAddr,
    health: Arc<Health>,
    tell: oneshot::Sender<io::Result<SocketAddr>>,
) {
    let bound = Listener::bind(address, CONNECTIONS).await;
    let bound = bound.and_then(|listener| Ok((listener.address()?, listener)));
    match bound {
        Ok((bound, mut listener)) => {
            let _ = tell.send(Ok(bound));
            // It stays open to the end, so that it can say why the process is not ready.
            let never = Arc::new(Shutdown::default());
            listener.times = TIMES;
            listener.serve(health::router(health), never).await;
        }
        Err(error) => {
            let _ = tell.send(Err(error));
            // The process ends with that error rather than because this task ended.
            std::future::pending::<()>().await;
        }
    }
}
