//! Requests to the API server about one RayCluster: fenced by the Lease, at one rate for all
//! clusters, with a time limit, and with failures as the core understands them.

use std::sync::Arc;
use std::time::Duration;

use json_patch::Patch as Operations;
use kube::Client;
use kube::api::{Patch, PatchParams, Request};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::lease::Fence;
use super::limiter::Limiter;
use super::observe::Key;
use super::words;
use crate::reconcile::effect::PodPatch;
use crate::reconcile::outcome::{ApiStatus, Failure};

/// How we are called in managed fields and audit logs.
pub const MANAGER: &str = "rayfit";

/// The longest that a request may take. Less than a Lease is trusted for after its renewal.
pub const LONGEST: Duration = Duration::from_secs(4);

/// How long all wait when the API server asks for patience and does not say for how long.
const PATIENCE: Duration = Duration::from_secs(1);

/// How soon a request is sent again after an error of the API server's own, within its time.
const AGAIN: Duration = Duration::from_millis(500);

/// How often a request is sent in one go.
const TRIES: u32 = 3;

/// Requests at once.
const AT_ONCE: usize = 32;

/// What all clusters share.
#[derive(Clone)]
pub struct Requests {
    client: Client,
    limiter: Arc<Limiter>,
    at_once: Arc<Semaphore>,
}

impl Requests {
    /// At most `rate` requests a second, `burst` at once after a quiet time.
    pub fn new(client: Client, rate: u32, burst: u32) -> Self {
        Self {
            client,
            limiter: Arc::new(Limiter::new(rate, burst)),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Sends a request, in its turn.
    pub async fn send<T: DeserializeOwned>(
        &self,
        request: hyper::http::Request<Vec<u8>>,
        longest: Duration,
    ) -> Result<T, Failure> {
        let answer = timeout(longest, self.client.request::<T>(request)).await;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failure(&error)),
            Err(_) => Err(Failure::NoAnswer(format!(
                "the API server did not answer within {longest:?}"
            ))),
        }
    }

    /// Waits until a request may be sent.
    async fn turn(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.limiter.pass().await;
        // It is never closed.
        self.at_once.acquire().await.ok()
    }

    fn failure(&self, error: &kube::Error) -> Failure {
        let kube::Error::Api(status) = error else {
            return Failure::NoAnswer(words::text(error));
        };
        let details = status.details.as_ref();
        let seconds = details.map_or(0, |details| details.retry_after_seconds);
        if status.code == 429 {
            let asked = Duration::from_secs(u64::from(seconds));
            self.limiter.pause(asked.clamp(PATIENCE, PATIENCE * 10));
        }
        let causes = details.map(|details| {
            details
                .causes
                .iter()
                .map(|cause| cause.reason.clone())
                .collect()
        });
        Failure::Api(ApiStatus {
            code: status.code,
            reason: status.reason.clone(),
            message: status.message.clone(),
            causes: causes.unwrap_or_default(),
            retry_after_s: (seconds > 0).then(|| f64::from(seconds)),
        })
    }
}

/// Requests about one RayCluster.
#[derive(Clone)]
pub struct Writer {
    requests: Requests,
    key: Key,
    fence: Option<(Fence, u32)>,
}

impl Writer {
    /// Writes under the Lease of a shard, or without one: in the head pod, where nobody else is.
    pub fn new(requests: Requests, key: Key, fence: Option<(Fence, u32)>) -> Self {
        Self {
            requests,
            key,
            fence,
        }
    }

    /// The RayCluster.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Reads the RayCluster.
    pub async fn get_cluster(&self) -> Result<Value, Failure> {
        let request = self
            .clusters()
            .get(&self.key.name, &kube::api::GetParams::default());
        let request = request.map_err(|error| unsendable(&error))?;
        let _turn = self.requests.turn().await;
        self.requests.send(request, LONGEST).await
    }

    /// Patches the RayCluster; answers it as it is then.
    pub async fn patch_cluster(&self, operations: &Operations) -> Result<Value, Failure> {
        let patch = Patch::<()>::Json(operations.clone());
        let request = self.clusters().patch(&self.key.name, &params(), &patch);
        self.write(request, LONGEST).await
    }

    /// Patches a pod.
    pub async fn patch_pod(&self, patch: &PodPatch, longest: Duration) -> Result<(), Failure> {
        let request = self
            .pods()
            .patch(&patch.pod, &params(), &Patch::Strategic(&patch.body));
        self.write::<IgnoredAny>(request, longest).await.map(drop)
    }

    /// Resizes a pod.
    pub async fn resize_pod(&self, patch: &PodPatch, longest: Duration) -> Result<(), Failure> {
        let request = self.pods().patch_subresource(
            "resize",
            &patch.pod,
            &params(),
            &Patch::Strategic(&patch.body),
        );
        self.write::<IgnoredAny>(request, longest).await.map(drop)
    }

    async fn write<T: DeserializeOwned>(
        &self,
        request: Result<hyper::http::Request<Vec<u8>>, kube::core::request::Error>,
        longest: Duration,
    ) -> Result<T, Failure> {
        let request = request.map_err(|error| unsendable(&error))?;
        let longest = longest.min(LONGEST);
        let waited = tokio::time::Instant::now();
        let _turn = self.requests.turn().await;
        // What is left of the time after waiting for a turn.
        let longest = longest.saturating_sub(waited.elapsed());
        if longest.is_zero() {
            return Err(Failure::NotSent("too many requests are waiting".to_owned()));
        }
        let _writing = match &self.fence {
            Some((fence, shard)) => {
                let begun = fence.begin(*shard, longest);
                Some(begun.map_err(|fenced| Failure::NotSent(fenced.to_string()))?)
            }
            None => None,
        };
        let deadline = tokio::time::Instant::now() + longest;
        let mut tries = 1;
        loop {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match self.requests.send(request.clone(), left).await {
                // Every write of ours may be repeated: it sets values, or tests a version.
                Err(Failure::Api(status))
                    if status.code >= 500 && tries < TRIES && left > AGAIN * 2 =>
                {
                    tries += 1;
                    tracing::debug!(cluster = %self.key, code = status.code, "sending it again");
                    tokio::time::sleep(AGAIN).await;
                    self.requests.limiter.pass().await;
                }
                outcome => return outcome,
            }
        }
    }

    fn clusters(&self) -> Request {
        Request::new(format!(
            "/apis/ray.io/v1/namespaces/{}/rayclusters",
            self.key.namespace
        ))
    }

    fn pods(&self) -> Request {
        Request::new(format!("/api/v1/namespaces/{}/pods", self.key.namespace))
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn unsendable(error: &kube::core::request::Error) -> Failure {
    Failure::NotSent(format!("the request cannot be built: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::time::Instant;

    use hyper::{Request as Sent, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server that answers everything so, and what it was sent.
    fn server(code: u16, body: Value) -> (Requests, Arc<Mutex<Vec<String>>>) {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let seen = sent.clone();
        let service = tower::service_fn(move |request: Sent<Body>| {
            seen.lock()
                .unwrap()
                .push(format!("{} {}", request.method(), request.uri().path()));
            let answer = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(answer.unwrap()) }
        });
        (Requests::new(Client::new(service, "ray"), 1000, 1000), sent)
    }

    fn writer(requests: &Requests, fence: &Fence) -> Writer {
        Writer::new(
            requests.clone(),
            Key::new("ray", "demo"),
            Some((fence.clone(), 2)),
        )
    }

    fn patch() -> PodPatch {
        PodPatch {
            pod: "w".to_owned(),
            body: json!({}),
        }
    }

    #[tokio::test]
    async fn nothing_is_sent_without_the_lease() {
        let (requests, sent) = server(200, json!({}));
        let fence = Fence::default();
        let writer = writer(&requests, &fence);
        let outcome = writer.resize_pod(&patch(), LONGEST).await;
        assert!(matches!(outcome, Err(Failure::NotSent(_))), "{outcome:?}");
        // It would end before the request could be done.
        fence.set(BTreeMap::from([(
            2,
            Instant::now() + Duration::from_secs(1),
        )]));
        let outcome = writer.patch_cluster(&Operations(Vec::new())).await;
        assert!(matches!(outcome, Err(Failure::NotSent(_))), "{outcome:?}");
        assert_eq!(*sent.lock().unwrap(), [""; 0]);
        fence.set(BTreeMap::from([(
            2,
            Instant::now() + Duration::from_mins(1),
        )]));
        writer.resize_pod(&patch(), LONGEST).await.unwrap();
        assert_eq!(
            *sent.lock().unwrap(),
            ["PATCH /api/v1/namespaces/ray/pods/w/resize"]
        );
        assert!(!fence.is_busy(2), "the write has ended");
    }

    #[tokio::test]
    async fn a_refusal_keeps_its_causes() {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": "too much",
            "details": { "causes": [{ "reason": "NodeCapacity", "message": "m", "field": "f" }] }
        });
        let (requests, _) = server(403, status);
        let fence = Fence::default();
        fence.set(BTreeMap::from([(
            2,
            Instant::now() + Duration::from_mins(1),
        )]));
        let outcome = writer(&requests, &fence)
            .resize_pod(&patch(), LONGEST)
            .await;
        let Err(Failure::Api(status)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            (status.code, status.causes),
            (403, vec!["NodeCapacity".to_owned()])
        );
    }

    #[tokio::test(start_paused = true)]
    async fn all_wait_when_the_api_server_asks_for_patience() {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
            "reason": "TooManyRequests", "message": "later", "details": { "retryAfterSeconds": 3 }
        });
        let (requests, _) = server(429, status);
        let first = Writer::new(requests.clone(), Key::new("ray", "demo"), None);
        let outcome = first.get_cluster().await;
        assert!(
            matches!(&outcome, Err(Failure::Api(status)) if status.retry_after_s == Some(3.0)),
            "{outcome:?}"
        );
        let other = Writer::new(requests, Key::new("ray", "other"), None);
        let start = tokio::time::Instant::now();
        let _ = other.get_cluster().await;
        assert!(
            start.elapsed() >= Duration::from_secs(3),
            "{:?}",
            start.elapsed()
        );
    }
}
