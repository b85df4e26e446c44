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
use crate::reconcile::effect::PodPatch;
use crate::reconcile::outcome::{ApiStatus, Failure};

/// How we are called in managed fields and audit logs.
pub const MANAGER: &str = "rayfit";

/// The longest that a request may take. Less than a Lease is trusted for after its renewal.
pub const LONGEST: Duration = Duration::from_secs(4);

/// How long all wait when the API server asks for patience and does not say for how long.
const PATIENCE: Duration = Duration::from_secs(1);

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
            return Failure::NoAnswer(chain(error));
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

/// An error and what led to it; only the outermost says nothing of use.
fn chain(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
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
        self.requests.send(request, longest).await
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
