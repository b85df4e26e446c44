//! Asking: one shared connection, a deadline for each call, faults told apart.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::link::Link;
use super::{Call, CallError, Endpoint, Fault};

/// How long a call may take, and how large an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From asking to the whole answer, connecting included.
    pub deadline: Duration,
    /// Bytes of one answer. The state of 2,000 nodes is some megabytes.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            answer: 256 << 20,
        }
    }
}

/// A GCS that can be asked. Clones share one connection, which is made when it is first needed,
/// and made again, ever more rarely, while the GCS is away.
///
/// Nothing is tried twice by itself: who calls decides again on what it then knows.
#[derive(Clone)]
pub struct Client {
    endpoint: Arc<Endpoint>,
    link: Arc<Mutex<Link>>,
    limits: Limits,
}

impl Client {
    /// A client that has not connected yet; its calls need a tokio runtime.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        let endpoint = Arc::new(endpoint);
        Self {
            link: Arc::new(Mutex::new(Link::new(Arc::clone(&endpoint)))),
            endpoint,
            limits,
        }
    }

    /// Who is asked.
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

    /// The most bytes of an answer.
    pub(super) fn largest_answer(&self) -> usize {
        self.limits.answer
    }

    /// An error of `call`.
    pub(super) fn error(&self, call: Call, fault: Fault) -> CallError {
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
        self.attempt(message, run)
            .await
            .map_err(|fault| self.error(call, fault))
    }

    async fn attempt<Q, R, F>(
        &self,
        message: Q,
        run: impl FnOnce(Channel, Request<Q>) -> F,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let request = self.request(message)?;
        let opened = self.link().channel(Instant::now());
        let (channel, generation) = opened.map_err(Fault::BackingOff)?;
        let deadline = self.limits.deadline;
        let answer = tokio::time::timeout(deadline, run(channel, request)).await;
        let result = match answer {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(Fault::from_status(&status, deadline)),
            Err(_) => Err(Fault::Deadline(deadline)),
        };
        match &result {
            Err(fault) if fault.is_unanswered() => self.link().failed(generation, Instant::now()),
            _ => self.link().answered(generation),
        }
        result
    }

    /// The request with our token, if the GCS asks for one.
    fn request<Q>(&self, message: Q) -> Result<Request<Q>, Fault> {
        let mut request = Request::new(message);
        // So that the GCS does not go on with what nobody waits for.
        request.set_timeout(self.limits.deadline);
        if let Some(source) = &self.endpoint.token {
            let token = source
                .token()
                .map_err(|fault| Fault::Credentials(fault.to_string()))?;
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
