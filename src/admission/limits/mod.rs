//! What one request, and all of them together, may take.

pub mod refusal;
pub mod turns;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use refusal::Refusal;
use turns::{ReviewTurn, Turns};

use crate::shares::{Bounds, ConnectionSource, Full, Share, Shares};

/// Bounds of the admission server. Together they hold inside the memory that the manifests give a
/// pod ([`crate::manifests::names::WEBHOOK_MEMORY`]).
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    /// Reviews at once, counted from when their bodies have come; the next one is told to come
    /// again.
    pub reviews: usize,
    /// Longest body, in bytes. API servers take objects of up to 3 MiB; a review holds two, and half
    /// a MiB for the rest.
    pub body: usize,
    /// Bodies of all requests together, in bytes. One source can have half of that.
    pub bodies: usize,
    /// Bodies longer than this, in bytes, are judged beside the event loop, one at a time: they
    /// take milliseconds, and a tree many times their size.
    pub inline: usize,
    /// How long a client may take to send a body.
    pub body_read: Duration,
    /// What the trees of one review may take, in bytes.
    pub trees: usize,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            reviews: 256,
            body: 13 << 19,
            bodies: 96 << 20,
            inline: 128 << 10,
            body_read: Duration::from_secs(10),
            trees: 320 << 20,
        }
    }
}

/// A body that has not come within this is slow: the first to give way to others of its source.
const SLOW: Duration = Duration::from_secs(1);

/// What is left of the bounds that requests share.
#[derive(Debug)]
pub struct Budget {
    limits: AdmissionLimits,
    reviews: Arc<Semaphore>,
    bodies: Shares,
    large: Turns,
}

/// Body lengths are accounted in pieces of this size, in bytes.
const PIECE: usize = 64 << 10;

/// A body with the memory that was set aside for it.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Bytes,
    memory: Option<Share>,
}

impl Budget {
    /// Nothing is used yet.
    pub fn new(limits: AdmissionLimits) -> Self {
        let pieces = limits.bodies / PIECE;
        Self {
            limits,
            reviews: Arc::new(Semaphore::new(limits.reviews)),
            bodies: Shares::new(Bounds {
                all: pieces,
                each: pieces / 2,
                patience: SLOW,
            }),
            // However many wait for a turn, others find a place.
            large: Turns::new(limits.reviews / 8),
        }
    }

    /// What the trees of one review may take, in bytes.
    pub fn trees(&self) -> usize {
        self.limits.trees
    }

    /// A place among the reviews that are worked on, until dropped.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = self.reviews.clone().try_acquire_owned();
        place.map_err(|_| Refusal::Busy)
    }

    /// The turn of the one large body that is judged at a time, if this one is large. While it
    /// waits for that, its memory may be asked for by others.
    pub async fn large(
        &self,
        held: &Held,
        source: ConnectionSource,
    ) -> Result<Option<ReviewTurn>, Refusal> {
        if held.bytes.len() <= self.limits.inline {
            return Ok(None);
        }
        let turn = or_give_way(held.memory.as_ref(), self.large.take(source)).await??;
        if let Some(memory) = &held.memory {
            memory.works();
        }
        Ok(Some(turn))
    }

    /// Reads a body from `source` within the bounds.
    pub async fn read(
        &self,
        body: Body,
        headers: &HeaderMap,
        source: ConnectionSource,
    ) -> Result<Held, Refusal> {
        check_content_type(headers)?;
        if content_length(headers).is_some_and(|length| length > self.limits.body) {
            return Err(Refusal::TooLong(self.limits.body));
        }
        tokio::time::timeout(self.limits.body_read, self.collect(body, source))
            .await
            .unwrap_or(Err(Refusal::Slow))
    }

    /// Takes the body's frames; memory is set aside as they come, not as they are announced, so
    /// that a client which announces much and sends little holds little.
    async fn collect(&self, mut body: Body, source: ConnectionSource) -> Result<Held, Refusal> {
        let mut whole = Whole::Empty;
        let mut memory = None;
        while let Some(frame) = or_give_way(memory.as_ref(), body.frame()).await? {
            let Ok(data) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
                continue;
            };
            let before = whole.len();
            if before + data.len() > self.limits.body {
                return Err(Refusal::TooLong(self.limits.body));
            }
            let length = before + data.len();
            if !(before == 0 && length <= PIECE && body.is_end_stream()) {
                self.set_aside(&mut memory, source, before, length)?;
            }
            whole = whole.with(data);
        }
        Ok(Held {
            bytes: whole.into_bytes(),
            memory,
        })
    }

    /// Grows `memory`, which covers `before` bytes, to cover `length`. For a small body that came
    /// at once none is: it is judged before anything else happens.
    fn set_aside(
        &self,
        memory: &mut Option<Share>,
        source: ConnectionSource,
        before: usize,
        length: usize,
    ) -> Result<(), Refusal> {
        let needed = length.div_ceil(PIECE);
        match memory {
            None => *memory = Some(self.bodies.take(source, needed).map_err(busy)?),
            Some(memory) => {
                let missing = needed - before.div_ceil(PIECE);
                if missing > 0 {
                    memory.grow(missing).map_err(busy)?;
                }
            }
        }
        Ok(())
    }
}

fn busy(_: Full) -> Refusal {
    Refusal::Busy
}

/// Waits for `work`, unless the memory is needed for others before.
async fn or_give_way<T>(
    memory: Option<&Share>,
    work: impl Future<Output = T>,
) -> Result<T, Refusal> {
    let Some(memory) = memory else {
        return Ok(work.await);
    };
    tokio::select! {
        biased;
        () = memory.asked() => Err(Refusal::Busy),
        done = work => Ok(done),
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
