//! The client: one shared connection, a deadline for each call, and classified errors.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::link::Link;
use super::{Call, CallError, Endpoint, GcsFault};
use crate::fair_semaphore::{FairPermit, FairSemaphore};

/// The limits of calls and of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcsLimits {
    /// The time from sending the request to the complete answer, including connecting.
    pub deadline: Duration,
    /// The bytes of one answer. The state of 10,000 nodes takes about ten megabytes.
    pub answer: usize,
}

/// Answers up to this size, in bytes, are received from all clusters at once. The state of a
/// thousand nodes is not larger.
const USUAL_ANSWER: usize = 1 << 20;

/// The number of larger answers that are held at once, so that their memory is bounded however many
/// clusters there are.
static LARGE_ANSWERS: LazyLock<FairSemaphore> = LazyLock::new(|| FairSemaphore::new(3));

/// The permit for a large answer. As long as it is kept, no other cluster has it.
#[derive(Debug)]
pub struct ClientPlace(
    #[expect(dead_code, reason = "it is free again when it is dropped")] FairPermit,
);

impl Default for GcsLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            answer: 16 << 20,
        }
    }
}

/// A client of a GCS. Clones share one connection, which is opened when it is first needed, and
/// opened again, with growing delays, while the GCS cannot be reached.
///
/// Calls are never retried automatically: the caller decides again with the state that it has then.
#[derive(Clone)]
pub struct Client {
    endpoint: Arc<Endpoint>,
    link: Arc<Mutex<Link>>,
    limits: GcsLimits,
    /// The namespace in whose turn it waits for a permit.
    namespace: Arc<str>,
    /// Whether the last answer was larger than usual.
    is_large: Arc<AtomicBool>,
}

impl Client {
    /// A client that has not connected yet; its calls need a tokio runtime.
    pub fn new(endpoint: Endpoint, limits: GcsLimits) -> Self {
        let endpoint = Arc::new(endpoint);
        Self {
            link: Arc::new(Mutex::new(Link::new(Arc::clone(&endpoint)))),
            endpoint,
            limits,
            namespace: Arc::default(),
            is_large: Arc::default(),
        }
    }

    /// The same for a cluster of this namespace: its large answers come in that namespace's turn.
    #[must_use]
    pub fn of_namespace(self, namespace: &Arc<str>) -> Self {
        Self {
            namespace: Arc::clone(namespace),
            ..self
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The same connection with another deadline.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        let mut other = self.clone();
        other.limits.deadline = deadline;
        other
    }

    /// The same connection with other limits.
    #[must_use]
    pub fn with_limits(&self, limits: GcsLimits) -> Self {
        Self {
            limits,
            ..self.clone()
        }
    }

    /// The most bytes of an answer without a permit.
    pub(super) fn usual_answer(&self) -> usize {
        self.limits.answer.min(USUAL_ANSWER)
    }

    /// The most bytes of an answer.
    pub(super) fn largest_answer(&self) -> usize {
        self.limits.answer
    }

    /// A permit for a large answer, if the answer is likely to be large. Waits until one is free.
    pub(super) async fn place(&self, is_known: bool) -> Option<ClientPlace> {
        if is_known {
            self.is_large.store(true, Ordering::Relaxed);
        }
        if !self.is_large.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.place_for_one().await)
    }

    /// A permit for one answer that is larger than usual. Waits until one is free, so nobody may wait for
    /// it who has one.
    pub(super) async fn place_for_one(&self) -> ClientPlace {
        ClientPlace(LARGE_ANSWERS.acquire(&self.namespace).await)
    }

    /// Records that an answer was not large after all.
    pub(super) fn was_usual(&self) {
        self.is_large.store(false, Ordering::Relaxed);
    }

    /// An error of `call`.
    pub(super) fn error(&self, call: Call, fault: GcsFault) -> CallError {
        let address = self.endpoint.address.clone();
        CallError {
            call,
            address,
            fault,
        }
    }

    /// Sends `message` through `run` and waits for the answer, at most until the deadline.
    pub(super) async fn call<Q, R, F>(
        &self,
        call: Call,
        message: Q,
        run: impl FnOnce(Channel, Request<Q>) -> F,
    ) -> Result<R, CallError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.attempt(message, |_| false, run)
            .await
            .map_err(|fault| self.error(call, fault))
    }

    /// Sends `message`, to which there is an answer only once there is something to say; `None` if
    /// there is nothing until the deadline.
    pub(super) async fn wait<Q, R, F>(
        &self,
        call: Call,
        message: Q,
        run: impl FnOnce(Channel, Request<Q>) -> F,
    ) -> Result<Option<R>, CallError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let silent = |fault: &GcsFault| matches!(fault, GcsFault::Deadline(_));
        match self.attempt(message, silent, run).await {
            Ok(reply) => Ok(Some(reply)),
            Err(fault) if silent(&fault) => Ok(None),
            Err(fault) => Err(self.error(call, fault)),
        }
    }

    /// Sends `message` once. From faults that are `expected`, nothing is concluded about the
    /// connection.
    async fn attempt<Q, R, F>(
        &self,
        message: Q,
        expected: impl Fn(&GcsFault) -> bool,
        run: impl FnOnce(Channel, Request<Q>) -> F,
    ) -> Result<R, GcsFault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let request = self.request(message)?;
        let opened = self.link().channel(Instant::now());
        let (channel, generation) = opened.map_err(GcsFault::BackingOff)?;
        let deadline = self.limits.deadline;
        // tonic's own limit neither includes connecting nor receiving the body of the answer.
        let answer = tokio::time::timeout(deadline, run(channel, request)).await;
        let result = match answer {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(GcsFault::from_status(&status, deadline)),
            Err(_) => Err(GcsFault::Deadline(deadline)),
        };
        match &result {
            Err(fault) if expected(fault) => {}
            Err(fault) if fault.is_unanswered() => self.link().failed(generation, Instant::now()),
            _ => self.link().answered(generation),
        }
        result
    }

    /// The request with the token, if the GCS requires one.
    fn request<Q>(&self, message: Q) -> Result<Request<Q>, GcsFault> {
        let mut request = Request::new(message);
        // So that the GCS does not continue with a call for which nobody waits.
        request.set_timeout(self.limits.deadline);
        if let Some(source) = &self.endpoint.token {
            let token = source
                .token()
                .map_err(|fault| GcsFault::Credentials(fault.to_string()))?;
            request
                .metadata_mut()
                .insert("authorization", token.header());
        }
        Ok(request)
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        // No code panics while it holds the lock, and a link is whole at every moment.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
