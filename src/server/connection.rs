//! One connection, from the handshake to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::guard::{Guarded, Progress};
use super::shutdown::{Phase, Shutdown};

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// For the TLS handshake. API servers give up after 10 s.
    pub handshake: Duration,
    /// For the head of a request, from its first byte.
    pub head: Duration,
    /// For a connection without a request. API servers keep idle connections for 90 s and must be
    /// the ones to close them.
    pub idle: Duration,
    /// For each wait until the client reads.
    pub write: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(8),
            head: Duration::from_secs(8),
            idle: Duration::from_secs(150),
            write: Duration::from_secs(20),
        }
    }
}

/// Longest head of a request, in bytes; those of API servers have a few hundred.
const HEAD_BYTES: u16 = 32 << 10;

/// Requests at once on one h2 connection.
const H2_STREAMS: u32 = 64;

/// How often, and for how long, an h2 client is asked whether it is still there.
const H2_PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// What all connections of a listener share.
#[derive(Clone)]
pub(super) struct Server {
    pub router: Router,
    pub tls: Option<TlsAcceptor>,
    pub times: Times,
    pub shutdown: Arc<Shutdown>,
}

impl Server {
    /// Serves one connection until it ends. Clients that break the rules are not our failure, so
    /// there is nothing to return.
    pub(super) async fn serve(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = &self.tls else {
            return self.serve_http(stream, false).await;
        };
        let handshake = tokio::time::timeout(self.times.handshake, acceptor.accept(stream));
        match handshake.await {
            Ok(Ok(stream)) => {
                let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                self.serve_http(stream, is_h2).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_elapsed) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve_http<S>(&self, stream: S, is_h2: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let progress = Arc::new(Progress::default());
        if is_h2 {
            // Its bytes belong to many requests; pings and the bound on streams take the place
            // of the head's time limit.
            progress.request_began();
        }
        let stream = Guarded::new(stream, progress.clone(), self.times.head, self.times.write);
        let requests = Requests {
            router: self.router.clone(),
            shutdown: self.shutdown.clone(),
            progress: (!is_h2).then_some(progress),
        };
        let service = service_fn(move |request| requests.clone().answer(request));
        let builder = if is_h2 { h2() } else { h1(self.times) };
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shutdown.reached(Phase::Draining) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error, "connection ended early");
        }
    }
}

/// The requests of one connection.
#[derive(Clone)]
struct Requests {
    router: Router,
    shutdown: Arc<Shutdown>,
    /// Of an HTTP/1.1 connection, which has one request at a time.
    progress: Option<Arc<Progress>>,
}

impl Requests {
    async fn answer(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let Some(progress) = self.progress else {
            return self.router.oneshot(request).await;
        };
        progress.request_began();
        let mut answer = self.router.oneshot(request).await?;
        progress.request_ended();
        if self.shutdown.phase() >= Phase::Shedding {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(answer)
    }
}

fn h1(times: Times) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(times.idle)
        .max_buf_size(HEAD_BYTES.into());
    builder
}

fn h2() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new()).http2_only();
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING.0)
        .keep_alive_timeout(H2_PING.1)
        .max_concurrent_streams(H2_STREAMS)
        .max_header_list_size(HEAD_BYTES.into());
    builder
}
