//! What one request, and all of them together, may take.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds of the admission server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Reviews at once; the next one is told to come again.
    pub reviews: usize,
    /// Longest body, in bytes. API servers take objects of up to 3 MiB; a review holds two.
    pub body: usize,
    /// Bodies of all requests together, in bytes.
    pub bodies: usize,
    /// Bodies longer than this, in bytes, are judged beside the event loop, one at a time: they
    /// take milliseconds, and a tree many times their size.
    pub inline: usize,
    /// How long a client may take to send a body.
    pub body_read: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reviews: 256,
            body: 7 << 20,
            bodies: 64 << 20,
            inline: 128 << 10,
            body_read: Duration::from_secs(10),
        }
    }
}

/// Why a request was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not JSON.
    #[error("send an AdmissionReview with content type application/json")]
    ContentType,
    /// Longer than [`Limits::body`].
    #[error("the body is longer than {} MiB, more than an API server sends", .0 >> 20)]
    TooLong(usize),
    /// The body did not come in time.
    #[error("the body did not arrive in time")]
    Slow,
    /// The client went away.
    #[error("the body ended early")]
    Broken,
    /// Too much to do already.
    #[error("rayfit is busy with other reviews: try again, or run more replicas")]
    Busy,
    /// The API server's timeout would pass before an answer.
    #[error("rayfit could not answer within the webhook's timeout: raise it, or run more replicas")]
    Deadline,
}

/// What is left of the bounds that requests share.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    reviews: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// Body lengths are accounted in pieces of this size, in bytes.
const PIECE: usize = 64 << 10;

/// A body with the memory that was set aside for it.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// Nothing is used yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            reviews: Arc::new(Semaphore::new(limits.reviews)),
            bodies: Arc::new(Semaphore::new(limits.bodies / PIECE)),
            large: Arc::new(Semaphore::new(1)),
        }
    }

    /// A place among the reviews that are worked on, until dropped.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = self.reviews.clone().try_acquire_owned();
        place.map_err(|_| Refusal::Busy)
    }

    /// The place for the one large body that is judged at a time, if this one is large.
    pub async fn large(&self, body: &Bytes) -> Option<OwnedSemaphorePermit> {
        if body.len() <= self.limits.inline {
            return None;
        }
        self.large.clone().acquire_owned().await.ok()
    }

    /// Reads a body within the bounds.
    pub async fn read(&self, body: Body, headers: &HeaderMap) -> Result<Held, Refusal> {
        check_content_type(headers)?;
        if content_length(headers).is_some_and(|length| length > self.limits.body) {
            return Err(Refusal::TooLong(self.limits.body));
        }
        tokio::time::timeout(self.limits.body_read, self.collect(body))
            .await
            .unwrap_or(Err(Refusal::Slow))
    }

    /// Takes the body's frames; memory is set aside as they come, not as they are announced, so
    /// that a client which announces much and sends little holds little.
    async fn collect(&self, mut body: Body) -> Result<Held, Refusal> {
        let mut whole = Whole::Empty;
        let mut memory: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
                continue;
            };
            let length = whole.len() + data.len();
            if length > self.limits.body {
                return Err(Refusal::TooLong(self.limits.body));
            }
            self.set_aside(&mut memory, length)?;
            whole = whole.with(data);
        }
        Ok(Held {
            bytes: whole.into_bytes(),
            _memory: memory,
        })
    }

    /// Grows `memory` to cover `length` bytes. The first piece is free: the bound on reviews
    /// covers it.
    fn set_aside(
        &self,
        memory: &mut Option<OwnedSemaphorePermit>,
        length: usize,
    ) -> Result<(), Refusal> {
        let held = memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = (length / PIECE).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_| Refusal::Busy)?;
        let bodies = self.bodies.clone();
        let more = bodies
            .try_acquire_many_owned(missing)
            .map_err(|_| Refusal::Busy)?;
        match memory {
            Some(memory) => memory.merge(more),
            None => *memory = Some(more),
        }
        Ok(())
    }
}

/// A body as far as it came. Most come in one frame and are never copied.
enum Whole {
    Empty,
    One(Bytes),
    Many(Vec<u8>),
}

impl Whole {
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn with(self, data: Bytes) -> Self {
        match self {
            Self::Empty => Self::One(data),
            Self::One(first) => Self::Many([first, data].concat()),
            Self::Many(mut bytes) => {
                bytes.extend_from_slice(&data);
                Self::Many(bytes)
            }
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.into(),
        }
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"));
    is_json.then_some(()).ok_or(Refusal::ContentType)
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}
