//! The client: one shared connection, a deadline for each call, and classified errors.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Response, Status};

use super::codec::Bounded;
use super::link::Link;
use super::wire::bounds::GcsAnswer;
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

/// Answers up to this size, in bytes, are received from all clusters at once.
// The state of a thousand nodes is not larger.
const USUAL_ANSWER: usize = 1 << 20;

/// The number of larger answers that are held at once.
// Their memory is thus bounded however many clusters there are.
static LARGE_ANSWERS: LazyLock<FairSemaphore> = LazyLock::new(|| FairSemaphore::new(3));

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
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    link: Arc<Mutex<Link>>,
    pub(super) limits: GcsLimits,
    /// The namespace in whose turn it waits for a permit.
    namespace: Arc<str>,
    /// The last answer was larger than usual.
    pub(super) is_large: Arc<AtomicBool>,
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

    /// The client for a cluster of this namespace: its large answers come in that namespace's turn.
    #[must_use]
    pub fn of_namespace(self, namespace: &Arc<str>) -> Self {
        Self {
            namespace: Arc::clone(namespace),
            ..self
        }
    }

    /// Another client of this connection, with another deadline.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        let mut other = self.clone();
        other.limits.deadline = deadline;
        other
    }

    /// The most bytes of an answer without a permit.
    pub(super) fn usual_answer(&self) -> usize {
        self.limits.answer.min(USUAL_ANSWER)
    }

    /// The permit for one answer that is larger than usual. Waits until one is free, so nobody may wait for
    /// it who has one.
    pub(super) async fn permit(&self) -> FairPermit {
        LARGE_ANSWERS.acquire(&self.namespace).await
    }

    /// The most bytes of an answer for which there may be a permit.
    pub(super) fn limit(&self, permit: Option<&FairPermit>) -> usize {
        permit.map_or_else(|| self.usual_answer(), |_| self.limits.answer)
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

    /// Sends `message` once and waits for an answer of at most `limit` bytes, until the deadline.
    pub(super) async fn call<Q, A>(
        &self,
        call: Call,
        message: Q,
        limit: usize,
    ) -> Result<A, CallError>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + GcsAnswer + Default + Send + 'static,
    {
        let deadline = self.limits.deadline;
        let mut request = Request::new(message);
        // So that the GCS does not continue with a call for which nobody waits.
        request.set_timeout(deadline);
        if let Some(token) = &self.endpoint.token {
            let header = token.header();
            let header = header.map_err(|fault| self.error(call, GcsFault::Credentials(fault)))?;
            request.metadata_mut().insert("authorization", header);
        }
        let opened = self.link.lock().channel(Instant::now());
        let (channel, generation) =
            opened.map_err(|wait| self.error(call, GcsFault::BackingOff(wait)))?;
        // tonic's own limit neither includes connecting nor receiving the body of the answer.
        let answer: Result<Result<Response<A>, Status>, _> =
            tokio::time::timeout(deadline, async {
                let mut service = Grpc::new(channel).max_decoding_message_size(limit);
                let ready = service.ready().await;
                ready.map_err(|error| {
                    Status::unknown(format!("the client is not ready: {error}"))
                })?;
                let path = PathAndQuery::from_static(call.into());
                service.unary(request, path, Bounded(PhantomData)).await
            })
            .await;
        let fault = match answer {
            Ok(Ok(response)) => {
                self.link.lock().answered(generation);
                return Ok(response.into_inner());
            }
            Ok(Err(status)) => GcsFault::from_status(&status, deadline),
            Err(_) => GcsFault::Deadline(deadline),
        };
        match fault {
            // A GCS with nothing to report is silent, so nothing is concluded about the connection.
            GcsFault::Deadline(_) if call == Call::Reports => {}
            GcsFault::Unreachable(_) | GcsFault::Deadline(_) | GcsFault::Tls(_) => {
                self.link.lock().failed(generation, Instant::now());
            }
            _ => self.link.lock().answered(generation),
        }
        Err(self.error(call, fault))
    }
}
