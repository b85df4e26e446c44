//! Limits on what one request, and all requests together, may use.
//!
//! In: the length and source of a request. Out: the right to read and check it, or a refusal. Invariant: one source cannot
//! take all that there is.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::sync::Semaphore;

use super::review::ReviewError;
use crate::fair_semaphore::{FairPermit, FairSemaphore};
use crate::shares::{ConnectionSource, Share, ShareBounds, Shares};

/// The flow of reviews that a source sends about objects of a namespace. Sources take turns, so that one with many
/// reviews does not delay one with few; and of a source its namespaces, since an API server sends the reviews of all
/// tenants.
pub type ReviewFlow = (ConnectionSource, Arc<str>);

/// The limits of the admission server. Together they keep within half of the memory that the manifests give
/// a pod ([`rayfit_core::manifests::names::WEBHOOK_MEMORY`]), whatever is sent.
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
    /// The limits.
    pub limits: AdmissionLimits,
    /// One permit for each review that may be in progress.
    pub(super) reviews: Arc<Semaphore>,
    bodies: Shares,
    large: FairSemaphore<ReviewFlow>,
}

/// Body lengths are counted in units of this size, in bytes.
const PIECE: usize = 64 << 10;

/// A body with the memory that is reserved for it.
#[derive(Debug)]
pub struct ReservedBody {
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
            large: FairSemaphore::new(1),
        }
    }

    /// If the body is large, the turn of the one large body that is processed at a time.
    pub async fn large(
        &self,
        body: &ReservedBody,
        source: ConnectionSource,
    ) -> Result<Option<FairPermit<ReviewFlow>>, ReviewError> {
        if body.bytes.len() <= self.limits.inline {
            return Ok(None);
        }
        let flow = (source, namespace_of(&body.bytes).into());
        // However many reviews wait for a turn, small ones can still be processed.
        let each = (self.limits.reviews / 32).max(1);
        // While a body waits for its turn, its memory can be taken back for others.
        let turn = self.large.acquire_within(&flow, each);
        let turn = or_give_way(body.memory.as_ref(), turn).await?;
        let turn = turn.ok_or(ReviewError::Busy)?;
        if let Some(memory) = &body.memory {
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
    ) -> Result<ReservedBody, ReviewError> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let media_type = text(header::CONTENT_TYPE).and_then(|value| value.split(';').next());
        if !media_type.is_some_and(|name| name.trim().eq_ignore_ascii_case("application/json")) {
            return Err(ReviewError::ContentType);
        }
        let length = text(header::CONTENT_LENGTH).and_then(|value| value.parse().ok());
        if length.is_some_and(|length: usize| length > self.limits.body) {
            return Err(ReviewError::TooLong(self.limits.body));
        }
        tokio::time::timeout(self.limits.body_read, self.collect(body, source))
            .await
            .unwrap_or(Err(ReviewError::Slow))
    }

    /// Reads the body's frames.
    async fn collect(
        &self,
        mut body: Body,
        source: ConnectionSource,
    ) -> Result<ReservedBody, ReviewError> {
        // Most bodies arrive in one frame and are never copied, others once, when all of them is there: a buffer that
        // grows takes up to three times what is counted.
        let mut frames: Vec<Bytes> = Vec::new();
        let mut length = 0;
        let mut memory: Option<Share> = None;
        while let Some(frame) = or_give_way(memory.as_ref(), body.frame()).await? {
            let Ok(data) = frame.map_err(|_| ReviewError::Broken)?.into_data() else {
                continue;
            };
            let earlier = length;
            length += data.len();
            if length > self.limits.body {
                return Err(ReviewError::TooLong(self.limits.body));
            }
            frames.push(data);
            // No memory is reserved for a small body that arrived at once, because it is processed
            // before anything else happens.
            if earlier == 0 && length <= PIECE && body.is_end_stream() {
                continue;
            }
            // Memory is reserved for what has arrived and not for what was announced, so that a
            // client which announces much and sends little holds little.
            let (reserved, needed) = (earlier.div_ceil(PIECE), length.div_ceil(PIECE));
            let granted = match &memory {
                None => self
                    .bodies
                    .take(source, needed)
                    .map(|share| memory = Some(share)),
                Some(memory) if needed > reserved => memory.grow(needed - reserved),
                Some(_) => Ok(()),
            };
            granted.map_err(|_| ReviewError::Busy)?;
        }
        let bytes = match frames.as_slice() {
            [] | [_] => frames.pop().unwrap_or_default(),
            frames => frames.concat().into(),
        };
        Ok(ReservedBody { bytes, memory })
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

/// Waits for `work`, unless the memory is needed for others first.
async fn or_give_way<T>(
    memory: Option<&Share>,
    work: impl Future<Output = T>,
) -> Result<T, ReviewError> {
    let Some(memory) = memory else {
        return Ok(work.await);
    };
    tokio::select! {
        biased;
        () = memory.recall() => Err(ReviewError::Busy),
        done = work => Ok(done),
    }
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
