//! Requests to the API server about one RayCluster: fenced by the Lease, at one rate for all
//! clusters, with a time limit, and with failures as the reconciler understands them.

use std::time::Duration;

use json_patch::Patch as Operations;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, Request};
use rayfit_core::flow_control::Flow;
use rayfit_core::reconcile::effects::effect::PodPatch;
use rayfit_core::reconcile::effects::failure::{ApiStatus, Failure};
use rayfit_core::reconcile::ownership::lease::trust::LONGEST_WRITE;
use rayfit_core::snapshot::allowed::AllowedCluster;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::apiserver::pages::Built;
use crate::apiserver::patience::RequestFlow;
use crate::apiserver::{Gate, Pass, error_chain};
use crate::controller::lease::Fence;
use crate::controller::lease::fence::Writing;
use crate::controller::observe::Key;

/// The name of Rayfit's writes in managed fields and audit logs.
pub const MANAGER: &str = "rayfit";

/// The longest time that a request may take.
pub const LONGEST: Duration = LONGEST_WRITE;

/// The pause before a request is sent again after an internal error of the API server.
// The API server answers so while etcd elects a leader.
const AGAIN: Duration = Duration::from_millis(500);

/// The most attempts for one write.
const TRIES: u32 = 3;

/// The way to the API server that all clusters share.
#[derive(Clone)]
pub struct Requests {
    /// The client.
    pub client: Client,
    /// The gate that they pass.
    pub gate: Gate,
}

impl Requests {
    /// Sends a request of a flow.
    pub async fn send<T: DeserializeOwned>(
        &self,
        flow: &Flow,
        mut request: hyper::http::Request<Vec<u8>>,
        longest: Duration,
    ) -> Result<T, Failure> {
        request.extensions_mut().insert(RequestFlow(flow.clone()));
        let answer = timeout(longest, self.client.request::<T>(request)).await;
        let error = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                return Err(Failure::NoAnswer(format!(
                    "the API server did not answer within {longest:?}"
                )));
            }
        };
        let kube::Error::Api(status) = error else {
            return Err(Failure::NoAnswer(error_chain::text(&error)));
        };
        let details = status.details.as_ref();
        let seconds = details.map(|details| details.retry_after_seconds);
        let seconds = seconds.filter(|seconds| *seconds > 0);
        // The client's own layer has heard the header Retry-After; only the Status is read here.
        if status.code == 429 {
            let wait = seconds.map(|seconds| Duration::from_secs(seconds.into()));
            self.gate.patience.ask(Some(flow), wait);
        }
        let causes = details.into_iter().flat_map(|details| &details.causes);
        Err(Failure::Api(ApiStatus {
            code: status.code,
            reason: status.reason.clone(),
            message: status.message.clone(),
            causes: causes.map(|cause| cause.reason.clone()).collect(),
            retry_after_s: seconds.map(f64::from),
        }))
    }
}

/// Sends the requests about one RayCluster.
#[derive(Clone)]
pub struct Writer {
    /// The way to the API server.
    pub requests: Requests,
    /// The RayCluster's namespace and name.
    pub key: Key,
    flow: Flow,
    fence: Option<Fence>,
}

impl Writer {
    /// Writes under the Lease; or without one in the head pod, where there is one process.
    pub fn new(requests: Requests, key: Key, fence: Option<Fence>) -> Self {
        Self {
            requests,
            flow: key.to_string().into(),
            key,
            fence,
        }
    }

    /// Waits at the gate until a request may be sent; with the result, requests are sent one by
    /// one.
    pub async fn turn(&self) -> Result<WriteTurn<'_>, Failure> {
        // A hold-up of the requests about one of the clusters must not hold up the others.
        let passed = self.requests.gate.pass(&self.flow).await;
        let passed = passed.map_err(|not| Failure::NotAdmitted(not.to_string()))?;
        Ok(WriteTurn {
            writer: self,
            _pass: passed,
        })
    }

    /// Begins a write that takes at most `longest`, to the API server or the GCS. It is refused if
    /// the Lease could end before it.
    pub fn begin(&self, longest: Duration) -> Result<Option<Writing>, Failure> {
        let fence = self.fence.as_ref();
        fence.map(|fence| fence.begin(longest)).transpose()
    }

    /// Reads the RayCluster, after waiting at the gate.
    pub async fn get_cluster(&self) -> Result<Value, Failure> {
        self.turn().await?.get_cluster().await
    }

    /// Patches the RayCluster, after waiting at the gate, and returns the patched object.
    pub async fn patch_cluster(&self, operations: &Operations) -> Result<Value, Failure> {
        self.turn().await?.patch_cluster(operations).await
    }

    fn clusters(&self) -> Request {
        Request::new(format!(
            "/apis/ray.io/v1/namespaces/{}/rayclusters",
            self.key.namespace
        ))
    }
}

/// The right to send requests about one RayCluster, after waiting at the gate. The time limit of a
/// request begins now, not when it began to wait: with a slow API server, requests were otherwise
/// sent with hardly any time left and cut off, which made it slower still.
pub struct WriteTurn<'a> {
    writer: &'a Writer,
    _pass: Pass,
}

impl WriteTurn<'_> {
    /// Reads the RayCluster.
    pub async fn get_cluster(&self) -> Result<Value, Failure> {
        let (clusters, name) = (self.writer.clusters(), &self.writer.key.name);
        // Without a resource version the API server answers with what is stored, and not from a
        // cache.
        let request = clusters.get(name, &kube::api::GetParams::default());
        let request = request.map_err(|error| unsendable(&error))?;
        let requests = &self.writer.requests;
        let answer = requests.send(&self.writer.flow, request, LONGEST).await;
        answer.map(|AllowedCluster(cluster)| cluster)
    }

    /// Patches the RayCluster, and returns the patched object.
    pub async fn patch_cluster(&self, operations: &Operations) -> Result<Value, Failure> {
        let (clusters, name) = (self.writer.clusters(), &self.writer.key.name);
        let patch = Patch::<()>::Json(operations.clone());
        let request = clusters.patch(name, &PatchParams::apply(MANAGER), &patch);
        let answer = self.write(request, LONGEST).await;
        answer.map(|AllowedCluster(cluster)| cluster)
    }

    /// Deletes the RayCluster.
    pub async fn delete_cluster(
        &self,
        only_this: Preconditions,
        longest: Duration,
    ) -> Result<(), Failure> {
        let how = DeleteParams::default().preconditions(only_this);
        let (clusters, name) = (self.writer.clusters(), &self.writer.key.name);
        let request = clusters.delete(name, &how);
        self.write::<IgnoredAny>(request, longest).await.map(drop)
    }

    /// Patches a pod, or a subresource of it.
    pub async fn patch_pod(
        &self,
        patch: &PodPatch,
        subresource: Option<&str>,
        longest: Duration,
    ) -> Result<(), Failure> {
        let namespace = &self.writer.key.namespace;
        let pods = Request::new(format!("/api/v1/namespaces/{namespace}/pods"));
        // A strategic patch merges the list of containers by name; a merge patch would replace it.
        let (pod, body) = (&patch.pod, Patch::Strategic(&patch.body));
        let params = PatchParams::apply(MANAGER);
        let request = match subresource {
            Some(subresource) => pods.patch_subresource(subresource, pod, &params, &body),
            None => pods.patch(pod, &params, &body),
        };
        self.write::<IgnoredAny>(request, longest).await.map(drop)
    }

    async fn write<T: DeserializeOwned>(
        &self,
        request: Built,
        longest: Duration,
    ) -> Result<T, Failure> {
        let request = request.map_err(|error| unsendable(&error))?;
        let longest = longest.min(LONGEST);
        let (requests, key) = (&self.writer.requests, &self.writer.key);
        let _writing = self.writer.begin(longest)?;
        let deadline = Instant::now() + longest;
        let mut tries = 1;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            match requests.send(&self.writer.flow, request.clone(), remaining).await {
                // All our writes can be repeated: they set absolute values, or test a version.
                Err(Failure::Api(status))
                    // With less time left, the answer to another attempt could not be waited for.
                    if status.code >= 500 && tries < TRIES && remaining > AGAIN * 3 =>
                {
                    tries += 1;
                    let rest = async {
                        sleep(AGAIN).await;
                        requests.gate.rate().await;
                    };
                    let is_over = tokio::select! {
                        () = requests.gate.closed() => true,
                        rested = timeout_at(deadline - AGAIN, rest) => rested.is_err(),
                    };
                    if is_over {
                        return Err(Failure::Api(status));
                    }
                    tracing::debug!(cluster = %key, code = status.code, "sending it again");
                }
                outcome => return outcome,
            }
        }
    }
}

fn unsendable(error: &kube::core::request::Error) -> Failure {
    Failure::NotSent(format!("the request cannot be built: {error}"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use hyper::{Request as Sent, Response};
    use kube::client::Body;
    use rayfit_core::flow_control::requests::AT_ONCE;
    use serde_json::json;

    use crate::apiserver::Patience;
    use crate::controller::act::writer::*;

    fn requests_through(client: Client) -> Requests {
        let gate = Gate::new(1000, 1000, Patience::default());
        Requests { client, gate }
    }

    /// An API server that gives these answers, and the requests that it received.
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
        (requests_through(Client::new(service, "ray")), sent)
    }

    fn writer(requests: &Requests, fence: &Fence) -> Writer {
        Writer::new(
            requests.clone(),
            Key::new("ray", "demo").unwrap(),
            Some(fence.clone()),
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
        let resize = async || {
            let turn = writer.turn().await.unwrap();
            turn.patch_pod(&patch(), Some("resize"), LONGEST).await
        };
        let outcome = resize().await;
        assert!(matches!(outcome, Err(Failure::NotSent(_))), "{outcome:?}");
        // The Lease would end before the request could be done.
        fence.set(Some(Instant::now() + Duration::from_secs(1)));
        let outcome = writer.patch_cluster(&Operations(Vec::new())).await;
        assert!(matches!(outcome, Err(Failure::NotSent(_))), "{outcome:?}");
        assert_eq!(*sent.lock().unwrap(), [""; 0]);
        fence.set(Some(Instant::now() + Duration::from_mins(1)));
        resize().await.unwrap();
        assert_eq!(
            *sent.lock().unwrap(),
            ["PATCH /api/v1/namespaces/ray/pods/w/resize"]
        );
        assert!(!fence.is_writing(), "the write has ended");
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
        fence.set(Some(Instant::now() + Duration::from_mins(1)));
        let writer = writer(&requests, &fence);
        let turn = writer.turn().await.unwrap();
        let outcome = turn.patch_pod(&patch(), Some("resize"), LONGEST).await;
        let Err(Failure::Api(status)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            (status.code, status.causes),
            (403, vec!["NodeCapacity".to_owned()])
        );
    }

    /// The API server answers each request shortly before its time is over, and many wait: none is
    /// cut off before that, and a request that would wait too long is never sent.
    #[tokio::test(start_paused = true)]
    async fn a_request_has_its_time_however_long_it_waited() {
        let sent = Arc::new(Mutex::new(0_usize));
        let seen = sent.clone();
        let slow = tower::service_fn(move |_: Sent<Body>| {
            *seen.lock().unwrap() += 1;
            async move {
                sleep(Duration::from_millis(3_500)).await;
                Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
            }
        });
        let requests = requests_through(Client::new(slow, "ray"));
        let reads = (0..5 * AT_ONCE).map(|number| {
            let key = Key::new("ray", &number.to_string()).unwrap();
            let writer = Writer::new(requests.clone(), key, None);
            async move { writer.get_cluster().await }
        });
        let outcomes = futures_util::future::join_all(reads).await;
        let not_sent =
            |outcome: &&Result<Value, Failure>| matches!(outcome, Err(Failure::NotAdmitted(_)));
        let left = outcomes.iter().filter(not_sent).count();
        let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!((done, left), (3 * AT_ONCE, 2 * AT_ONCE), "{outcomes:?}");
        assert_eq!(*sent.lock().unwrap(), done);
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_waits_when_the_api_server_asks_for_patience() {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
            "reason": "TooManyRequests", "message": "later", "details": { "retryAfterSeconds": 3 }
        });
        let (requests, _) = server(429, status);
        let first = Writer::new(requests.clone(), Key::new("ray", "demo").unwrap(), None);
        let outcome = first.get_cluster().await;
        assert!(
            matches!(&outcome, Err(Failure::Api(status)) if status.retry_after_s == Some(3.0)),
            "{outcome:?}"
        );
        let start = tokio::time::Instant::now();
        let foreign = Key::new("elsewhere", "demo").unwrap().to_string().into();
        drop(requests.gate.pass(&foreign).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        let other = Writer::new(requests, Key::new("ray", "other").unwrap(), None);
        let _ = other.get_cluster().await;
        assert!(
            start.elapsed() >= Duration::from_secs(3),
            "{:?}",
            start.elapsed()
        );
    }

    /// While a write waits to be sent once more, the API server asks all clients to slow down: the
    /// write ends in its time, and with the API server's answer.
    #[tokio::test(start_paused = true)]
    async fn a_retry_waits_within_its_deadline() {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
            "reason": "InternalError", "message": "etcd"
        });
        let (requests, sent) = server(500, status);
        let writer = Writer::new(requests.clone(), Key::new("ray", "demo").unwrap(), None);
        let start = tokio::time::Instant::now();
        let nothing = Operations(Vec::new());
        let impatient = async {
            sleep(Duration::from_millis(100)).await;
            for namespace in ["a", "b"] {
                let flow = format!("{namespace}/demo").into();
                requests
                    .gate
                    .patience
                    .ask(Some(&flow), Some(Duration::from_mins(1)));
            }
        };
        let (outcome, ()) = tokio::join!(writer.patch_cluster(&nothing), impatient);
        assert!(
            matches!(&outcome, Err(Failure::Api(status)) if status.code == 500),
            "{outcome:?}"
        );
        assert!(start.elapsed() <= LONGEST, "{:?}", start.elapsed());
        assert_eq!(sent.lock().unwrap().len(), 1);
    }
}
