//! Patience: when the API server answers a request with `Retry-After`, requests of the client wait, not
//! only the one that was refused. [`rayfit_core::flow_control::patience`] says which.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use rayfit_core::flow_control::Flow;
use rayfit_core::flow_control::patience::PatienceUntil;
use tokio::time::{Instant, sleep_until, timeout};
use tower::{BoxError, Service, ServiceExt as _};

use super::server_time::{ServerTime, own_now};

/// The longest time from sending a request to the first byte of its answer.
// Webhooks of others may take half a minute of it.
const ANSWER: Duration = Duration::from_secs(45);

/// The path of Leases, which are renewed even while other requests wait.
// Without them nothing is written at all, and there are few of them.
const LEASES: &str = "/apis/coordination.k8s.io/";

/// The times until which requests to the API server wait.
#[derive(Debug, Clone)]
pub struct Patience {
    pub(super) until: Arc<Mutex<PatienceUntil>>,
    /// The moment from which all times are counted.
    start: Instant,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            until: Arc::default(),
            start: Instant::now(),
        }
    }
}

impl Patience {
    /// Takes in that the API server asked for patience, for `time` if it said for how long, in answer
    /// to a request of a flow or of the process itself.
    pub fn ask(&self, flow: Option<&Flow>, time: Option<Duration>) {
        let now = self.now();
        self.until.lock().ask(now, flow, time);
    }

    /// Waits until requests of a flow, or of the process itself, may be sent again.
    pub async fn over(&self, flow: Option<&Flow>) {
        loop {
            let now = self.now();
            let until = match flow {
                Some(flow) => self.until.lock().until_of(flow, now),
                None => self.until.lock().until(now),
            };
            let Some(until) = until else { return };
            self.pass_to(until).await;
        }
    }

    /// The time, counted from when this was made.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits until then.
    pub async fn pass_to(&self, time: Duration) {
        sleep_until(self.start + time).await;
    }
}

/// The wait that the header `Retry-After` asks for.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?;
    // HTTP allows a date too, but API servers write seconds.
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// Marks a request as one about a cluster: a call for patience in its answer is for that cluster's
/// namespace first.
#[derive(Debug, Clone)]
pub struct RequestFlow(pub Flow);

/// Sends a request by `inner`, once the API server no longer asks for patience, and takes in what its answer says of
/// patience and of time.
pub(super) async fn send<S, B>(
    inner: S,
    patience: Patience,
    time: ServerTime,
    request: Request<Body>,
) -> Result<Response<B>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    let flow = request.extensions().get::<RequestFlow>().cloned();
    if !request.uri().path().contains(LEASES) {
        patience.over(None).await;
    }
    // The time for which a request waits above must not count as the answer's.
    let sent_at = own_now();
    let answer = timeout(ANSWER, inner.oneshot(request)).await;
    let answer = answer.map_err(|_| {
        let seconds = ANSWER.as_secs();
        format!("the API server did not begin to answer within {seconds} seconds")
    })?;
    let answer = answer.map_err(Into::into)?;
    time.hear(answer.headers(), sent_at);
    let (status, wait) = (answer.status(), retry_after(answer.headers()));
    if status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::SERVICE_UNAVAILABLE && wait.is_some()
    {
        let flow = flow.map(|RequestFlow(flow)| flow);
        patience.ask(flow.as_ref(), wait);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_as_long_as_was_asked() {
        let patience = Patience::default();
        let start = Instant::now();
        patience.over(None).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        patience.ask(None, Some(Duration::from_secs(7)));
        patience.ask(None, None);
        patience.over(None).await;
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(7), "{took:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
    }
}
