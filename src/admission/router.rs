//! The router: HTTP in, HTTP out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{Duration, Instant};

use super::decide::{self, Decision, Engine, decide};
use super::limits::refusal::Refusal;
use super::limits::{AdmissionCapacity, AdmissionLimits};
use super::new_pods::review::{OwnedPod, is_one, new_pod};
use super::new_pods::{OwnerReads, OwnerUnread};
use super::response::RenderError;
use super::review::{Review, ReviewError};
use super::tree::TreeBudget;
use super::{Webhook, deadline, response};
use crate::admission::record::Record;
use crate::policy::EffectivePolicy;
use crate::shares::ConnectionSource;
use crate::telemetry::Metrics;
use crate::telemetry::reviews::ReviewOutcome;

/// The state of the webhooks.
#[derive(Debug)]
pub struct Admission {
    /// The policies and facts. They can be replaced at any time; the next request uses the new
    /// ones.
    pub policy: Arc<ArcSwap<EffectivePolicy>>,
    engine: Engine,
    budget: AdmissionCapacity,
    metrics: Arc<Metrics>,
    owners: Option<OwnerReads>,
}

impl Admission {
    /// Webhooks that check objects under `policy`.
    pub fn new(policy: Arc<ArcSwap<EffectivePolicy>>, metrics: Arc<Metrics>) -> Self {
        Self::with(
            policy,
            metrics,
            Engine::default(),
            AdmissionLimits::default(),
        )
    }

    /// The same with other functions of the core and other limits.
    pub fn with(
        policy: Arc<ArcSwap<EffectivePolicy>>,
        metrics: Arc<Metrics>,
        engine: Engine,
        limits: AdmissionLimits,
    ) -> Self {
        Self {
            policy,
            engine,
            budget: AdmissionCapacity::new(limits),
            metrics,
            owners: None,
        }
    }

    /// The same, which gives new pods their initial size; without, they stay as they are made.
    #[must_use]
    pub fn with_owners(self, owners: OwnerReads) -> Self {
        Self {
            owners: Some(owners),
            ..self
        }
    }
}

/// The routes of both webhooks: `POST /mutate` and `POST /validate`.
pub fn router(admission: Arc<Admission>) -> Router {
    Router::new()
        .route(
            Webhook::Mutate.path(),
            post(|State(admission), request| serve(admission, Webhook::Mutate, request)),
        )
        .route(
            Webhook::Validate.path(),
            post(|State(admission), request| serve(admission, Webhook::Validate, request)),
        )
        .with_state(admission)
}

/// The result for a body: the answer, and the record for log and metrics.
struct Answer {
    status: StatusCode,
    body: Bytes,
    record: Record,
}

/// The result of reading a body.
enum Reviewed {
    /// The answer.
    Answered(Answer),
    /// The RayCluster of a pod has to be read first.
    Owned(Box<PodReview>),
}

/// The review of a new pod, while its RayCluster is read: as little as is needed then, because many may wait.
struct PodReview {
    uid: String,
    owned: OwnedPod,
    record: Record,
}

/// The time that is kept to answer after the RayCluster was read, or was not.
const TO_ANSWER: Duration = Duration::from_millis(100);

async fn serve(admission: Arc<Admission>, webhook: Webhook, request: Request) -> Response {
    let start = Instant::now();
    let in_flight = admission.metrics.in_flight.start();
    let limit = deadline::of_query(request.uri().query());
    let answer = tokio::time::timeout(limit, answer(&admission, webhook, request, start + limit))
        .await
        .unwrap_or(Err(Refusal::Deadline))
        .unwrap_or_else(|refusal| refused(webhook, refusal));
    drop(in_flight);
    let Answer {
        status,
        body,
        record,
    } = answer;
    admission
        .metrics
        .observe(&record.counted(), start.elapsed());
    record.log(start.elapsed());
    into_http(status, body)
}

/// The answer, or why the request was refused before it was read.
async fn answer(
    admission: &Arc<Admission>,
    webhook: Webhook,
    request: Request,
    deadline: Instant,
) -> Result<Answer, Refusal> {
    let (parts, body) = request.into_parts();
    let source = parts.extensions.get::<ConnectionSource>().copied();
    let source = source.unwrap_or_default();
    let held = admission.budget.read(body, &parts.headers, source).await?;
    // Reserved only now, so that slow senders do not keep out requests that have arrived.
    let place = admission.budget.enter()?;
    let reviewed = match admission.budget.large(&held, source).await? {
        None => {
            let reviewed = admission.review(webhook, &held.bytes);
            // A pod waits for its RayCluster without the body, and without a place of others.
            drop((place, held));
            reviewed
        }
        Some(turn) => {
            if Instant::now() >= deadline {
                return Err(Refusal::Deadline);
            }
            let admission = admission.clone();
            let judged = tokio::task::spawn_blocking(move || {
                // Held here rather than by the caller, who may give up before this is done.
                let _held = (place, turn);
                admission.review(webhook, &held.bytes)
            });
            judged
                .await
                .unwrap_or_else(|_| Reviewed::Answered(panicked(Record::new(webhook))))
        }
    };
    Ok(match reviewed {
        Reviewed::Answered(answer) => answer,
        Reviewed::Owned(pod) => admission.enlarge(*pod, deadline).await,
    })
}

impl Admission {
    /// Reviews one body. A failure affects only this request.
    fn review(&self, webhook: Webhook, body: &[u8]) -> Reviewed {
        let mut record = Record::new(webhook);
        let review = match Review::parse(body) {
            Ok(review) => review,
            Err(error) => return Reviewed::Answered(bad_request(record, &error.to_string())),
        };
        record.identify(&review);
        let decided = match caught(|| self.step(webhook, &review)) {
            Ok(Step::Owned(owned)) => {
                record.name(&review);
                let uid = review.uid.into_owned();
                return Reviewed::Owned(Box::new(PodReview { uid, owned, record }));
            }
            Ok(Step::Decided(decision)) => Ok(decision),
            Err(fault) => Err(fault),
        };
        let mut answer = answered(record, &review, decided);
        if answer.record.is_logged() {
            answer.record.name(&review);
        }
        Reviewed::Answered(answer)
    }

    fn step(&self, webhook: Webhook, review: &Review<'_>) -> Result<Step, Fault> {
        let budget = TreeBudget::of(self.budget.trees());
        if self.owners.is_some() && is_one(webhook, review) {
            return Ok(match new_pod(review, &budget)? {
                Ok(owned) => Step::Owned(owned),
                Err(left) => Step::Decided(Decision::LeftAsMade(left)),
            });
        }
        let policy = self.policy.load();
        let decision = decide(webhook, review, &policy, now(), self.engine, &budget)?;
        Ok(Step::Decided(decision))
    }

    /// Answers the review of a pod by what its RayCluster says. A pod is never refused.
    async fn enlarge(&self, waiting: PodReview, deadline: Instant) -> Answer {
        let PodReview { uid, owned, record } = waiting;
        let OwnedPod { pod, owner } = owned;
        let review = Review {
            uid: uid.into(),
            ..Review::default()
        };
        let Some(owners) = &self.owners else {
            let unread = Decision::OwnerUnread(OwnerUnread::NoApiServer);
            return answered(record, &review, Ok(unread));
        };
        let until = deadline.checked_sub(TO_ANSWER).unwrap_or(deadline);
        let owner = owners.read(owner, until).await;
        if let Err(unread) = &owner
            && owners.is_to_warn()
        {
            tracing::warn!(%unread, "new pods are made as their templates say, and grow later");
        }
        let decided = caught(|| Ok(decide::of_new_pod(&pod, owner, owners.now())));
        answered(record, &review, decided)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "exemptions end by the wall clock"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The fault because of which a review has no answer.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error("a panic")]
    Panic,
}

/// The progress of a decision about a review.
enum Step {
    /// It is decided.
    Decided(Decision),
    /// The RayCluster of a pod has to be read first.
    Owned(OwnedPod),
}

fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Fault::Panic))
}

fn answered(mut record: Record, review: &Review<'_>, decided: Result<Decision, Fault>) -> Answer {
    let rendered = caught(|| {
        let decision = decided?;
        Ok((response::render(review, &decision)?, decision))
    });
    let fault = match rendered {
        Ok((body, decision)) => {
            record.decided(&decision);
            return Answer {
                status: StatusCode::OK,
                body: body.into(),
                record,
            };
        }
        Err(fault) => fault,
    };
    match fault {
        Fault::Review(error @ ReviewError::TooMuch(_)) => Answer {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            ..bad_request(record, &error.to_string())
        },
        Fault::Review(error) => bad_request(record, &error.to_string()),
        Fault::Render(error) => failed(record, &error.to_string()),
        Fault::Panic => panicked(record),
    }
}

fn bad_request(record: Record, problem: &str) -> Answer {
    Answer {
        status: StatusCode::BAD_REQUEST,
        body: problem.to_owned().into(),
        record: record.failed(ReviewOutcome::BadRequest, problem),
    }
}

/// The answer where Rayfit itself has failed.
fn failed(record: Record, problem: &str) -> Answer {
    Answer {
        // API servers treat every status except 200 as a failed call, and apply the webhook's
        // failure policy.
        status: StatusCode::INTERNAL_SERVER_ERROR,
        body: problem.to_owned().into(),
        record: record.failed(ReviewOutcome::Panic, problem),
    }
}

fn panicked(record: Record) -> Answer {
    failed(
        record,
        "rayfit failed on this object; its log says where. Please report this as a bug",
    )
}

fn refused(webhook: Webhook, refusal: Refusal) -> Answer {
    let (status, outcome) = match refusal {
        Refusal::ContentType => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ReviewOutcome::BadRequest,
        ),
        Refusal::TooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, ReviewOutcome::BadRequest),
        Refusal::Slow => (StatusCode::REQUEST_TIMEOUT, ReviewOutcome::BadRequest),
        Refusal::Broken => (StatusCode::BAD_REQUEST, ReviewOutcome::BadRequest),
        Refusal::Busy => (StatusCode::TOO_MANY_REQUESTS, ReviewOutcome::Overload),
        Refusal::Deadline => (StatusCode::GATEWAY_TIMEOUT, ReviewOutcome::Deadline),
    };
    let problem = refusal.to_string();
    Answer {
        status,
        record: Record::new(webhook).failed(outcome, &problem),
        body: problem.into(),
    }
}

fn into_http(status: StatusCode, body: Bytes) -> Response {
    let kind = if status == StatusCode::OK {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::TOO_MANY_REQUESTS {
        // The webhook clients of API servers wait this long, in seconds, and retry within their
        // timeout.
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if matches!(
        status,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    ) {
        // The rest of the body need not be read.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
