//! Limits on what one request, and all requests together, may use.
//!
//! In: the length and source of a request. Out: the right to read and check it, or a refusal. Invariant: one source cannot
//! take all that there is.

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

use crate::shares::{ConnectionSource, Full, Share, ShareBounds, Shares};

/// The limits of the admission server. Together they keep within half of the memory that the manifests give
/// a pod ([`crate::manifests::names::WEBHOOK_MEMORY`]), whatever is sent.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    /// The reviews in progress at once, counted from when their bodies have arrived; further ones
    /// are refused with 429.
    pub reviews: usize,
    /// The longest body, in bytes. API servers accept objects of up to 3 MiB; a review contains
    /// two, and half a MiB for the rest.
    pub body: usize,
    /// Bodies of all requests together, in bytes. One source can have half of that.
    pub bodies: usize,
    /// Bodies longer than this, in bytes, are processed outside the event loop, one at a time,
    /// because each takes milliseconds, and a parsed tree many times its size.
    pub inline: usize,
    /// The longest time in which a client has to send a body.
    pub body_read: Duration,
    /// The memory that the parsed objects of one review may use, in bytes.
    pub trees: usize,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            reviews: 256,
            body: 13 << 19,
            bodies: 64 << 20,
            inline: 128 << 10,
            body_read: Duration::from_secs(10),
            trees: 160 << 20,
        }
    }
}

/// A body that has not arrived within this time is slow, and gives way first to others of its
/// source.
const SLOW: Duration = Duration::from_secs(1);

/// The remaining capacity that requests share.
#[derive(Debug)]
pub struct AdmissionCapacity {
    limits: AdmissionLimits,
    reviews: Arc<Semaphore>,
    bodies: Shares,
    large: Turns,
}

/// Body lengths are counted in units of this size, in bytes.
const PIECE: usize = 64 << 10;

/// A body with the memory that is reserved for it.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Bytes,
    memory: Option<Share>,
}

impl AdmissionCapacity {
    /// The full capacity.
    pub fn new(limits: AdmissionLimits) -> Self {
        let pieces = limits.bodies / PIECE;
        Self {
            limits,
            reviews: Arc::new(Semaphore::new(limits.reviews)),
            bodies: Shares::new(ShareBounds {
                all: pieces,
                each: pieces / 2,
                patience: SLOW,
            }),
            // However many reviews wait for a turn, small ones can still be processed.
            large: Turns::new((limits.reviews / 32).max(1)),
        }
    }

    /// The memory that the parsed objects of one review may use, in bytes.
    pub fn trees(&self) -> usize {
        self.limits.trees
    }

    /// Counts as a review in progress until dropped.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = self.reviews.clone().try_acquire_owned();
        place.map_err(|_| Refusal::Busy)
    }

    /// If the body is large, the turn of the one large body that is processed at a time.
    pub async fn large(
        &self,
        held: &Held,
        source: ConnectionSource,
    ) -> Result<Option<ReviewTurn>, Refusal> {
        if held.bytes.len() <= self.limits.inline {
            return Ok(None);
        }
        let flow = (source, namespace_of(&held.bytes).into());
        // While a body waits for its turn, its memory can be taken back for others.
        let turn = or_give_way(held.memory.as_ref(), self.large.take(flow)).await??;
        if let Some(memory) = &held.memory {
            memory.works();
        }
        Ok(Some(turn))
    }

    /// Reads a body from `source` within the limits.
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

    /// Reads the body's frames.
    async fn collect(&self, mut body: Body, source: ConnectionSource) -> Result<Held, Refusal> {
        let mut whole = Whole::default();
        let mut memory = None;
        while let Some(frame) = or_give_way(memory.as_ref(), body.frame()).await? {
            let Ok(data) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
                continue;
            };
            let before = whole.length;
            if before + data.len() > self.limits.body {
                return Err(Refusal::TooLong(self.limits.body));
            }
            // Memory is reserved for what has arrived and not for what was announced, so that a
            // client which announces much and sends little holds little.
            let length = before + data.len();
            // No memory is reserved for a small body that arrived at once, because it is processed
            // before anything else happens.
            if !(before == 0 && length <= PIECE && body.is_end_stream()) {
                self.set_aside(&mut memory, source, before, length)?;
            }
            whole.push(data);
        }
        Ok(Held {
            bytes: whole.into_bytes(),
            memory,
        })
    }

    /// Grows `memory`, which covers `before` bytes, to cover `length`.
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

/// The bytes of a review that are searched for its namespace: API servers write it before the objects.
const HEAD: usize = 4 << 10;

/// The namespace that a review is about, as far as it can be seen without parsing it: it decides about turns only. A
/// name before it cannot contain the quotes that are searched for, because quotes are escaped in it.
fn namespace_of(body: &[u8]) -> &str {
    let head = body.get(..HEAD).unwrap_or(body);
    let key = br#""namespace":""#;
    let at = head.windows(key.len()).position(|part| part == key);
    let rest = at.and_then(|at| head.get(at + key.len()..));
    let name = rest.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    name.and_then(|name| std::str::from_utf8(name).ok())
        .unwrap_or_default()
}

fn busy(_: Full) -> Refusal {
    Refusal::Busy
}

/// Waits for `work`, unless the memory is needed for others first.
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

/// The part of a body that has arrived. Most bodies arrive in one frame and are never copied, others once, when all
/// of them is there: a buffer that grows takes up to three times what is counted.
#[derive(Default)]
struct Whole {
    frames: Vec<Bytes>,
    length: usize,
}

impl Whole {
    fn push(&mut self, data: Bytes) {
        self.length += data.len();
        self.frames.push(data);
    }

    fn into_bytes(mut self) -> Bytes {
        if self.frames.len() < 2 {
            return self.frames.pop().unwrap_or_default();
        }
        let mut whole = Vec::with_capacity(self.length);
        for frame in self.frames {
            whole.extend_from_slice(&frame);
        }
        whole.into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_of_a_review_is_seen_before_its_objects() {
        let review = r#"{"kind":"AdmissionReview","request":{"uid":"1","name":"\",\"namespace\":\"b","namespace":"a","object":{"metadata":{"namespace":"c"}}}}"#;
        assert_eq!(namespace_of(review.as_bytes()), "a");
        assert_eq!(namespace_of(b"{}"), "");
    }
}
