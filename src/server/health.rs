//! `/livez`, `/readyz` and `/metrics` for kubelets and Prometheus, on a separate port without TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Mutex;
use tokio::time::sleep_until;

use super::pulse::Pulse;
use super::shutdown::{Phase, Shutdown};
use crate::apiserver::Watches;
use crate::apiserver::health::WatchTrouble;
use crate::telemetry::Metrics;
use crate::tls::CertificateStore;

/// The state that the answers depend on.
#[derive(Debug)]
pub struct Health {
    /// The serving certificate.
    pub certificates: Arc<CertificateStore>,
    /// The phase of stopping.
    pub shutdown: Arc<Shutdown>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The process serves webhooks.
    pub webhooks: bool,
    /// The webhook port accepts connections.
    pub listening: AtomicBool,
    /// The RayPolicies were read, as far as that is possible.
    pub policies: Arc<AtomicBool>,
    /// The state of the watches.
    pub watches: Watches,
    /// The signal that the rest of the process still runs.
    pub pulse: Arc<Pulse>,
}

/// The reason for which the process is not ready.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum NotReady {
    /// The process was told to stop.
    #[display("not ready: stopping")]
    Stopping,
    /// The webhook port is not bound yet.
    #[display("not ready: the webhook port is not listening yet")]
    NotListening,
    /// The RayPolicies were not read yet.
    #[display("not ready: the RayPolicies have not been read yet; does the API server answer?")]
    NoPolicies,
    /// A watch that scaling needs fails. Only a process that only scales is unready for that: one
    /// with webhooks continues to check objects with the state that it has.
    #[display("not ready: {_0}")]
    Blind(WatchTrouble),
    /// There is no certificate.
    #[display("not ready: no certificate yet; is the Secret there, and mounted?")]
    NoCertificate,
    /// The certificate has expired.
    #[display("not ready: the certificate has expired; is it renewed, and the new one mounted?")]
    Expired,
}

impl Health {
    /// Checks that API servers' calls would succeed at `now`.
    pub fn ready_at(&self, now: SystemTime) -> Result<(), NotReady> {
        if self.shutdown.phase() > Phase::Serving {
            return Err(NotReady::Stopping);
        }
        // No Service leads to this process, so its readiness may tell how its watches are.
        if !self.webhooks {
            let trouble = self.watches.troubles().into_iter().next();
            return trouble.map_or(Ok(()), |trouble| Err(NotReady::Blind(trouble)));
        }
        if !self.listening.load(Ordering::Acquire) {
            return Err(NotReady::NotListening);
        }
        if !self.policies.load(Ordering::Acquire) {
            return Err(NotReady::NoPolicies);
        }
        match self.certificates.not_after() {
            None => Err(NotReady::NoCertificate),
            Some(end) if now >= end => Err(NotReady::Expired),
            Some(_) => Ok(()),
        }
    }
}

/// The routes.
pub fn router(health: Arc<Health>) -> Router {
    let last = Arc::new(Mutex::default());
    Router::new()
        .route(
            "/livez",
            get(
                async |State(health): State<Arc<Health>>| match health.pulse.lost() {
                    None => "alive\n".into_response(),
                    Some(since) => {
                        let text = format!("no thread has run for {} s\n", since.as_secs());
                        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
                    }
                },
            ),
        )
        .route("/readyz", get(readyz))
        .route(
            "/metrics",
            get(async move |State(health): State<Arc<Health>>| {
                let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                match rendered(health.metrics.clone(), &last).await {
                    Ok(text) => ([(header::CONTENT_TYPE, media_type)], text).into_response(),
                    Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
                }
            }),
        )
        .with_state(health)
}

async fn readyz(State(health): State<Arc<Health>>) -> Response {
    #[expect(clippy::disallowed_methods, reason = "the shell's clock")]
    let now = SystemTime::now();
    match health.ready_at(now) {
        Ok(()) => {
            // A failing watch is no reason to remove the webhooks from their Service.
            let troubles = health.watches.troubles().into_iter();
            let lines = troubles.map(|trouble| format!("but {trouble}\n"));
            let text = std::iter::once("ready\n".to_owned()).chain(lines);
            text.collect::<String>().into_response()
        }
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

/// The shortest time between two renderings.
const BETWEEN: Duration = Duration::from_millis(100);

/// The metrics in text. `last` has the last rendering and the time of its beginning: however many requests arrive,
/// metrics are rendered at most a few times a second, outside the thread that answers probes. No request gets
/// metrics from before it arrived: one that arrives too early waits for the next rendering.
async fn rendered(
    metrics: Arc<Metrics>,
    last: &Mutex<Option<(Instant, Bytes)>>,
) -> Result<Bytes, String> {
    let arrival = Instant::now();
    let mut last = last.lock().await;
    if let Some((begun, text)) = &*last {
        // A rendering that began after the request came is as new as one of its own.
        if *begun >= arrival {
            return Ok(text.clone());
        }
        sleep_until((*begun + BETWEEN).into()).await;
    }
    let begun = Instant::now();
    let written = tokio::task::spawn_blocking(move || metrics.text());
    let text = written.await.map_err(|error| error.to_string())?;
    let text = Bytes::from(text.map_err(|error| error.to_string())?);
    *last = Some((begun, text.clone()));
    Ok(text)
}
