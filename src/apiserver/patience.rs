//! Patience: when the API server answers one request with `Retry-After`, all requests of the client
//! wait, not only the one that was refused.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, sleep_until, timeout};
use tower::{BoxError, Layer, Service, ServiceExt as _};

/// The shortest and the longest wait, whatever the API server asks for.
const BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// The longest time from sending a request to the first byte of its answer. Webhooks of others may
/// take half a minute of it.
const ANSWER: Duration = Duration::from_secs(45);

/// Leases are renewed even while other requests wait: without them nothing is written at all, and
/// there are few of them.
const LEASES: &str = "/apis/coordination.k8s.io/";

/// Until when requests to the API server wait.
#[derive(Debug, Clone, Default)]
pub struct Patience(Arc<Mutex<Option<Instant>>>);

impl Patience {
    /// Takes in that the API server asked for patience, for `time` if it said for how long.
    pub fn ask(&self, time: Option<Duration>) {
        let time = time.unwrap_or_default().clamp(BOUNDS.0, BOUNDS.1);
        let end = Instant::now() + time;
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *until = Some(until.map_or(end, |until| until.max(end)));
    }

    /// Waits until requests may be sent again.
    pub async fn over(&self) {
        while let Some(until) = self.until() {
            sleep_until(until).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *until = until.filter(|until| *until > Instant::now());
        *until
    }

    /// Takes in the status and the headers of an answer.
    fn hear(&self, status: StatusCode, headers: &HeaderMap) {
        let asked = retry_after(headers);
        if status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::SERVICE_UNAVAILABLE && asked.is_some()
        {
            self.ask(asked);
        }
    }
}

/// The wait that the header `Retry-After` asks for. API servers write it in seconds.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

impl<S> Layer<S> for Patience {
    type Service = Patient<S>;

    fn layer(&self, inner: S) -> Patient<S> {
        Patient {
            inner,
            patience: self.clone(),
        }
    }
}

/// A client whose requests wait while the API server asks for patience.
#[derive(Debug, Clone)]
pub struct Patient<S> {
    inner: S,
    patience: Patience,
}

impl<S, B> Service<Request<Body>> for Patient<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (inner, patience) = (self.inner.clone(), self.patience.clone());
        let waits = !request.uri().path().contains(LEASES);
        async move {
            if waits {
                patience.over().await;
            }
            let answer = timeout(ANSWER, inner.oneshot(request)).await;
            let answer = answer.map_err(|_| NoAnswer)?.map_err(Into::into)?;
            patience.hear(answer.status(), answer.headers());
            Ok(answer)
        }
        .boxed()
    }
}

/// No answer began in time.
#[derive(Debug, thiserror::Error)]
#[error("the API server did not begin to answer within {} seconds", ANSWER.as_secs())]
struct NoAnswer;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_time_that_was_asked_for_counts_within_bounds() {
        let patience = Patience::default();
        let start = Instant::now();
        patience.over().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        patience.ask(Some(Duration::from_secs(7)));
        patience.ask(None);
        patience.over().await;
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(7), "{took:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        patience.ask(Some(Duration::from_hours(1)));
        patience.over().await;
        assert!(start.elapsed() < took + BOUNDS.1 + Duration::from_secs(1));
    }
}
