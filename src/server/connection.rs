//! One connection, from the handshake to its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, Request, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::guard::{BODY, ExchangeProgress, GuardedStream};
use super::shutdown::{Phase, Shutdown};
use crate::shares::{ConnectionSource, Share};

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// The limit of the TLS handshake. API servers give up after 10 s.
    pub handshake: Duration,
    /// The limit for the headers of a request, from their first byte.
    pub head: Duration,
    /// The limit for a connection without a request. API servers keep idle connections for 90 s and
    /// must be the ones to close them.
    pub idle: Duration,
    /// The limit of each wait until the client reads.
    pub write: Duration,
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(8),
            head: Duration::from_secs(8),
            idle: Duration::from_secs(150),
            write: Duration::from_secs(20),
        }
    }
}

/// The longest headers of a request, in bytes. Those of API servers have a few hundred.
const HEAD_BYTES: usize = 32 << 10;

/// The state that all connections of a listener share.
#[derive(Clone)]
pub(super) struct Server {
    pub router: Router,
    pub tls: Option<TlsAcceptor>,
    pub times: ConnectionTimeouts,
    pub shutdown: Arc<Shutdown>,
}

impl Server {
    /// Serves one connection from `source` until it ends, or has to give its `place` to another.
    pub(super) async fn serve(self, stream: TcpStream, source: ConnectionSource, place: Share) {
        // Otherwise the end of an answer may wait for the client's acknowledgement of its
        // beginning.
        let _ = stream.set_nodelay(true);
        let progress = Arc::new(ExchangeProgress::new(place));
        let Some(acceptor) = &self.tls else {
            return self.serve_http(stream, source, progress).await;
        };
        let handshake = tokio::time::timeout(self.times.handshake, acceptor.accept(stream));
        let handshake = tokio::select! {
            handshake = handshake => handshake,
            () = progress.place.recall() => return gave_way(),
        };
        match handshake {
            Ok(Ok(stream)) => self.serve_http(stream, source, progress).await,
            // Clients that misbehave are not a failure of the server.
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_elapsed) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve_http<S>(
        &self,
        stream: S,
        source: ConnectionSource,
        progress: Arc<ExchangeProgress>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream =
            GuardedStream::new(stream, progress.clone(), self.times.head, self.times.write);
        let (router, shutdown) = (self.router.clone(), self.shutdown.clone());
        let requests = progress.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, shutdown) = (router.clone(), shutdown.clone());
            let progress = requests.clone();
            async move {
                progress.enter(BODY);
                if request.body().is_end_stream() {
                    progress.body_came();
                }
                let mut request = request.map(|body| TrackedBody {
                    body,
                    progress: progress.clone(),
                });
                request.extensions_mut().insert(source);
                let mut answer = router.oneshot(request).await?;
                progress.request_ended();
                // Asked last, because the process may have begun to stop while the request was
                // being answered.
                if shutdown.phase() >= Phase::Shedding || progress.place.is_recalled() {
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(header::CONNECTION, close);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        // Only HTTP/1.1: API servers speak nothing else to webhooks, and with HTTP/2 one connection
        // could hold as much as many.
        let connection = Builder::new()
            .timer(TokioTimer::new())
            // hyper counts this from when the connection becomes idle; `guard` counts from the
            // first byte.
            .header_read_timeout(self.times.idle)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            // Polled first, so that data that has arrived is noticed before the connection gives
            // way.
            biased;
            ended = connection.as_mut() => ended,
            () = progress.place.recall() => {
                if progress.place.is_waiting() {
                    return gave_way();
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = self.shutdown.reached(Phase::Draining) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended early");
        }
    }
}

fn gave_way() {
    tracing::debug!(
        "a connection that waited for its client was closed to make room for a new \
                     one"
    );
}

/// The body of a request, which reports when it is complete.
struct TrackedBody {
    body: Incoming,
    progress: Arc<ExchangeProgress>,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && self.body.is_end_stream()) {
            self.progress.body_came();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
