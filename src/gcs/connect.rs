//! One connection to a GCS: TCP, and TLS where it is required.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::http::Uri;
use tower::Service;

use super::tls::TlsFault;
use super::{Endpoint, Tls};

/// The error of a connection that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// A certificate, key or token of this side is missing.
    #[error(transparent)]
    Material(#[from] TlsFault),
    /// No TCP connection.
    #[error("{0}")]
    Tcp(io::Error),
    /// No agreement on TLS.
    #[error("{0}")]
    Handshake(io::Error),
}

/// Opens connections to one GCS, whatever address is requested.
#[derive(Clone)]
pub(super) struct Connector(pub(super) Arc<Endpoint>);

/// A byte stream in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let endpoint = Arc::clone(&self.0);
        Box::pin(async move { Ok(TokioIo::new(connect(&endpoint).await?)) })
    }
}

async fn connect(endpoint: &Endpoint) -> Result<Box<dyn Stream>, ConnectError> {
    let address = (endpoint.address.host(), endpoint.address.port());
    let stream = TcpStream::connect(address)
        .await
        .map_err(ConnectError::Tcp)?;
    // As tonic's own connector does: a small request must not wait for the acknowledgement of
    // another.
    stream.set_nodelay(true).map_err(ConnectError::Tcp)?;
    match &endpoint.tls {
        None => Ok(Box::new(stream)),
        Some(tls) => secure(stream, tls, endpoint.address.host()).await,
    }
}

async fn secure(stream: TcpStream, tls: &Tls, host: &str) -> Result<Box<dyn Stream>, ConnectError> {
    let connector = TlsConnector::from(tls.config()?);
    let secured = connector.connect(tls.name(host)?, stream).await;
    Ok(Box::new(secured.map_err(ConnectError::Handshake)?))
}
