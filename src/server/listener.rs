//! Accepting connections.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use prometheus_client::metrics::gauge::Gauge;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::connection::{ConnectionTimeouts, Server};
use super::shutdown::{Phase, Shutdown};
use crate::shares::{ConnectionSource, Full, Share, ShareBounds, Shares};
use crate::telemetry::metrics::CountedGauge;

/// A bound port.
#[derive(Debug)]
pub struct Listener {
    /// The configuration of TLS, if it is spoken.
    pub tls: Option<Arc<ServerConfig>>,
    /// The time limits of connections.
    pub times: ConnectionTimeouts,
    /// The gauge of open connections.
    pub open: Gauge,
    socket: TcpListener,
    places: Shares,
    /// Each connection has a clone; once all are dropped, the receiver is notified.
    open_end: mpsc::Sender<Infallible>,
    all_ended: mpsc::Receiver<Infallible>,
}

/// The pause after the system refused a connection, for example because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Listener {
    /// Binds `address`, of which `::` takes both families, for at most `most` connections at once, half of them from one source. When
    /// there are more, the oldest that waits for its client gives way; if none does, new ones wait
    /// in the system's queue.
    pub async fn bind(address: SocketAddr, most: u32) -> io::Result<Self> {
        let mut bound = TcpListener::bind(address).await;
        // Without IPv6 in the system, it stands for every IPv4 address.
        if bound.is_err() && address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
            let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
            bound = TcpListener::bind(v4).await.or(bound);
        }
        let socket = bound.map_err(|error| {
            let problem =
                format!("cannot listen on {address}: {error}; choose another address or port");
            io::Error::new(error.kind(), problem)
        })?;
        let most = most as usize;
        let (open_end, all_ended) = mpsc::channel(1);
        Ok(Self {
            socket,
            tls: None,
            times: ConnectionTimeouts::default(),
            places: Shares::new(ShareBounds {
                all: most,
                each: most.div_ceil(2),
                patience: Duration::ZERO,
            }),
            open: Gauge::default(),
            open_end,
            all_ended,
        })
    }

    /// The address that it listens on, with the actual port if 0 was requested.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts and serves until `shutdown` ends accepting, then waits for the remaining
    /// connections. Dropping the future leaves connections to the runtime.
    pub async fn serve(self, router: Router, shutdown: Arc<Shutdown>) {
        let server = Server {
            router,
            tls: self.tls.clone().map(TlsAcceptor::from),
            times: self.times,
            shutdown: shutdown.clone(),
        };
        let accept_all = async {
            loop {
                match self.socket.accept().await {
                    Ok((stream, peer)) => self.take_in(&server, stream, peer).await,
                    Err(error) => {
                        tracing::debug!(%error, "a connection was not accepted");
                        // If there are no file descriptors left, a connection that only waits gives
                        // its own back.
                        self.places.make_way();
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            () = accept_all => {}
            () = shutdown.reached(Phase::Closing) => {}
        }
        // Connections that were established before the socket closes are accepted, because closing it would reset
        // them: each by polling once, because a connection in the queue is accepted without waiting.
        while let Ok(Ok((stream, peer))) =
            tokio::time::timeout(Duration::ZERO, self.socket.accept()).await
        {
            let source = ConnectionSource::of(peer.ip());
            let Ok(place) = self.places.take(source, 1) else {
                break;
            };
            self.spawn(&server, stream, source, place);
        }
        let Self {
            socket,
            open_end,
            mut all_ended,
            ..
        } = self;
        // Each connection has a sender of this channel too; with the last one gone, all have ended.
        drop((socket, open_end));
        let _none = all_ended.recv().await;
    }

    /// Serves a connection as soon as there is a share for it. A source that holds all that one
    /// source may hold, and has requests in progress on all of it, is refused.
    async fn take_in(&self, server: &Server, stream: TcpStream, peer: SocketAddr) {
        let source = ConnectionSource::of(peer.ip());
        loop {
            match self.places.take(source, 1) {
                Ok(place) => return self.spawn(server, stream, source, place),
                // Others need not wait until the requests of this source have ended.
                Err(Full::Source) => {
                    return tracing::debug!(%peer, "too many connections from one address");
                }
                Err(Full::All) => self.places.returned().await,
            }
        }
    }

    fn spawn(&self, server: &Server, stream: TcpStream, source: ConnectionSource, place: Share) {
        let counted = CountedGauge::of(&self.open);
        let server = server.clone();
        let open_end = self.open_end.clone();
        tokio::spawn(async move {
            server.serve(stream, source, place).await;
            drop((counted, open_end));
        });
    }
}
