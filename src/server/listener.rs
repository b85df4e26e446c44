//! Accepting connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::connection::{Server, Times};
use super::shutdown::{Phase, Shutdown};
use crate::telemetry::metrics::Level;

/// A bound port.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    times: Times,
    places: Arc<Semaphore>,
    most: u32,
    open: Level,
}

/// A port that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; choose another address or port")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

/// How long to wait after the system refused a connection, for want of file descriptors perhaps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// `::` takes both families; where the system has no IPv6, it stands for every IPv4 address.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    if bound.is_err() && address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
        return TcpListener::bind(v4).await.or(bound);
    }
    bound
}

impl Listener {
    /// Binds `address` for at most `most` connections at once; more wait in the system's queue.
    pub async fn bind(address: SocketAddr, most: u32) -> Result<Self, BindError> {
        let socket = bind(address)
            .await
            .map_err(|source| BindError { address, source })?;
        Ok(Self {
            socket,
            tls: None,
            times: Times::default(),
            places: Arc::new(Semaphore::new(most as usize)),
            most,
            open: Level::default(),
        })
    }

    /// With TLS.
    #[must_use]
    pub fn with_tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// With other time limits.
    #[must_use]
    pub fn with_times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// Counting its open connections in `open`.
    #[must_use]
    pub fn counted_in(mut self, open: Level) -> Self {
        self.open = open;
        self
    }

    /// Where it listens: the port that was chosen, if 0 was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts and serves until `shutdown` closes the door, then waits for the connections that
    /// are left. Dropping the future leaves connections to the runtime.
    pub async fn serve(self, router: Router, shutdown: Arc<Shutdown>) {
        let server = Server {
            router,
            tls: self.tls.clone().map(TlsAcceptor::from),
            times: self.times,
            shutdown: shutdown.clone(),
        };
        tokio::select! {
            () = self.accept_all(&server) => {}
            () = shutdown.reached(Phase::Closing) => {}
        }
        self.take_in_the_queue(&server).await;
        let Self {
            socket,
            places,
            most,
            ..
        } = self;
        drop(socket);
        let _all_gone = places.acquire_many(most).await;
    }

    async fn accept_all(&self, server: &Server) {
        loop {
            let Ok(place) = self.places.clone().acquire_owned().await else {
                return;
            };
            match self.socket.accept().await {
                Ok((stream, _)) => self.spawn(server, stream, place),
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Takes in those that connected before the door closes; closing the socket would reset them.
    async fn take_in_the_queue(&self, server: &Server) {
        while let Ok(place) = self.places.clone().try_acquire_owned() {
            let accepted = tokio::time::timeout(Duration::ZERO, self.socket.accept()).await;
            let Ok(Ok((stream, _))) = accepted else {
                return;
            };
            self.spawn(server, stream, place);
        }
    }

    fn spawn(&self, server: &Server, stream: TcpStream, place: OwnedSemaphorePermit) {
        let counted = self.open.start();
        let server = server.clone();
        tokio::spawn(async move {
            server.serve(stream).await;
            drop((counted, place));
        });
    }
}
