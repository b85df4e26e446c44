//! The connection of a client: TCP, and TLS where it is required; and when it may try to connect again.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rayfit_core::seconds::Retry;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint as Transport};
use tower::service_fn;

use super::{Endpoint, GcsFault};

/// The waits between attempts.
const RETRY: Retry = Retry {
    first_s: 1.0,
    longest_s: 15.0,
};

/// A channel, and how often in a row it failed.
pub(super) struct Link {
    endpoint: Arc<Endpoint>,
    channel: Option<Channel>,
    /// Numbers the channels, because the result of a call on an earlier one says nothing about this
    /// one.
    generation: u64,
    failures: u32,
    not_before: Option<Instant>,
}

impl Link {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            channel: None,
            generation: 0,
            failures: 0,
            not_before: None,
        }
    }

    /// The channel to use now and its generation, or how long to wait after failures.
    pub(super) fn channel(&mut self, now: Instant) -> Result<(Channel, u64), Duration> {
        let wait = self
            .not_before
            .map(|then| then.saturating_duration_since(now));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        let channel = self.channel.get_or_insert_with(|| {
            // It connects when it is first used, and again when the connection was closed. The
            // connector decides where to; the address here only sets `:authority`.
            let endpoint = Arc::clone(&self.endpoint);
            let connector = service_fn(move |_: Uri| connect(Arc::clone(&endpoint)));
            let transport = Transport::from_static("http://gcs").buffer_size(8);
            transport.connect_with_connector_lazy(connector)
        });
        Ok((channel.clone(), self.generation))
    }

    /// The GCS answered, even if with an error.
    pub(super) fn answered(&mut self, generation: u64) {
        if generation == self.generation {
            self.failures = 0;
            self.not_before = None;
        }
    }

    /// There was no answer. The channel is dropped.
    pub(super) fn failed(&mut self, generation: u64, now: Instant) {
        if generation != self.generation {
            return;
        }
        // Its connection may be dead without having been closed. Pings would detect that too, but
        // gRPC servers disconnect clients that ping them.
        self.channel = None;
        self.generation += 1;
        // The first failure may be a connection that a restart of the GCS has cut.
        let is_first = self.failures == 0;
        let pause = RETRY.wait(self.failures, 1.0);
        self.not_before = (!is_first).then(|| now + pause);
        self.failures = self.failures.saturating_add(1);
    }
}

/// A byte stream in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection to a GCS.
async fn connect(endpoint: Arc<Endpoint>) -> Result<TokioIo<Box<dyn Stream>>, GcsFault> {
    let Endpoint { address, tls, .. } = &*endpoint;
    let unreachable = |error: std::io::Error| GcsFault::Unreachable(error.to_string());
    let stream = TcpStream::connect((address.host.as_str(), address.port))
        .await
        .map_err(unreachable)?;
    // As tonic's own connector does: a small request must not wait for the acknowledgement
    // of another.
    stream.set_nodelay(true).map_err(unreachable)?;
    let Some(tls) = tls else {
        return Ok(TokioIo::new(Box::new(stream) as Box<dyn Stream>));
    };
    let connector = TlsConnector::from(tls.config().map_err(GcsFault::Credentials)?);
    let server_name = tls.server_name.as_ref().unwrap_or(&address.host);
    let name = ServerName::try_from(server_name.clone()).map_err(|_| {
        let why = format!("{server_name:?} is not a name that a certificate could have");
        GcsFault::Credentials(why)
    })?;
    let secured = connector.connect(name, stream).await;
    let secured = secured.map_err(|error| GcsFault::Tls(error.to_string()))?;
    Ok(TokioIo::new(Box::new(secured) as Box<dyn Stream>))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcs::Address;

    fn link() -> Link {
        Link::new(Arc::new(Endpoint::plain(Address::new("127.0.0.1", 1))))
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_become_rarer_and_an_answer_ends_that() {
        let (mut link, mut now) = (link(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..7 {
            let (_, generation) = link.channel(now).unwrap();
            link.failed(generation, now);
            let wait = link.channel(now).err().unwrap_or_default();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 15, 15]);
        let (_, generation) = link.channel(now).unwrap();
        link.answered(generation);
        link.failed(generation, now);
        assert!(link.channel(now).is_ok(), "the count begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_fail_together_count_once() {
        let (mut link, now) = (link(), Instant::now());
        let calls: Vec<u64> = (0..3).map(|_| link.channel(now).unwrap().1).collect();
        for generation in calls {
            link.failed(generation, now);
        }
        assert!(link.channel(now).is_ok());
    }
}
