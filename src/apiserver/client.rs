//! The client of the API server that every background part of Rayfit uses.

use std::path::Path;
use std::time::Duration;

use hyper::header::{HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::layer::layer_fn;
use tower::{BoxError, Service, service_fn};

use super::patience::{self, Patience};
use super::server_time::ServerTime;

/// The user agent, as audit logs show it.
const NAME: &str = concat!("rayfit/", env!("CARGO_PKG_VERSION"));

/// A connection from which nothing is read for so long is dead.
// A watch on which nothing arrives ends sooner, by the silence in `WatchDurations`.
const SILENCE: Duration = Duration::from_secs(100);

/// The most requests that wait for the connection.
const BUFFER: usize = 1024;

/// A client, the waiting time after `Retry-After` that all of its requests share, and what they show of the
/// API server's clock.
#[derive(Clone)]
pub struct ApiServer {
    /// The client.
    pub client: Client,
    /// The waiting time that all requests of the client share.
    pub patience: Patience,
    /// The clock of the API server.
    pub time: ServerTime,
}

impl ApiServer {
    /// The API server of `kubeconfig`, or of the cluster in which the process runs.
    pub async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let config = match kubeconfig {
            None => Config::incluster()?,
            Some(file) => {
                let kubeconfig = Kubeconfig::read_from(file)?;
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
            }
        };
        Ok(Self::with(config)?)
    }

    /// The API server of a configuration.
    pub fn with(mut config: Config) -> Result<Self, kube::Error> {
        let name = HeaderValue::from_static(NAME);
        config.headers.push((USER_AGENT, name));
        // By default the library would repeat requests that were answered with 429, 503 or 504 up
        // to fifteen times. Our limits would not cover that, and nothing here would see the
        // `Retry-After`.
        config.default_retry = false;
        // The network inside a cluster is wide, and compressing large lists would cost the API server more than it
        // saves; people's commands have the library's own choice.
        config.disable_compression = true;
        config.read_timeout = Some(SILENCE);
        // Otherwise the time would count from when a pooled connection went idle, and end the next
        // request.
        config.reset_reader_on_write = true;
        // The library's service cannot be cloned, which the layers above it need; the buffer's
        // handle can.
        let builder = ClientBuilder::try_from(config)?.with_layer(&BufferLayer::new(BUFFER));
        Ok(Self::of_builder(builder))
    }

    /// The API server that a client reaches which is being built.
    pub fn of_builder<S, B>(builder: ClientBuilder<S>) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: hyper::body::Body<Data = hyper::body::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (patience, time) = (Patience::default(), ServerTime::default());
        // Readiness belongs to one clone of a service, and each request is sent by another one, which waits for its own.
        let layer = layer_fn(|inner: S| {
            let (patience, time) = (patience.clone(), time.clone());
            service_fn(move |request| {
                patience::send(inner.clone(), patience.clone(), time.clone(), request)
            })
        });
        Self {
            client: builder.with_layer(&layer).build(),
            patience,
            time,
        }
    }
}
