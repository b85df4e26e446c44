//! The router: HTTP in, HTTP out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use k8s_openapi::jiff::Timestamp;

use super::decide::{Decision, Engine, decide};
use super::limits::refusal::Refusal;
use super::limits::{AdmissionCapacity, AdmissionLimits};
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
    let Some(turn) = admission.budget.large(&held, source).await? else {
        return Ok(admission.review(webhook, &held.bytes));
    };
    if Instant::now() >= deadline {
        return Err(Refusal::Deadline);
    }
    let admission = admission.clone();
    let judged = tokio::task::spawn_blocking(move || {
        // Held here rather than by the caller, who may give up before this is done.
        let _held = (place, turn);
        admission.review(webhook, &held.bytes)
    });
    Ok(judged
        .await
        .unwrap_or_else(|_| panicked(Record::new(webhook))))
}

impl Admission {
    /// Answers one body. A failure affects only this request.
    fn review(&self, webhook: Webhook, body: &[u8]) -> Answer {
        let mut record = Record::new(webhook);
        let review = match Review::parse(body) {
            Ok(review) => review,
            Err(error) => return bad_request(record, &error.to_string()),
        };
        record.identify(&review);
        let decided = catch_unwind(AssertUnwindSafe(|| self.decide(webhook, &review)));
        let mut answer = match decided {
            Ok(Ok((body, decision))) => answered(record, body, &decision),
            Ok(Err(Fault::Review(error @ ReviewError::TooMuch(_)))) => Answer {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                ..bad_request(record, &error.to_string())
            },
            Ok(Err(Fault::Review(error))) => bad_request(record, &error.to_string()),
            Ok(Err(Fault::Render(error))) => failed(record, &error.to_string()),
            Err(_panic) => panicked(record),
        };
        if answer.record.is_logged() {
            answer.record.name(&review);
        }
        answer
    }

    fn decide(&self, webhook: Webhook, review: &Review<'_>) -> Result<(Vec<u8>, Decision), Fault> {
        let budget = TreeBudget::of(self.budget.trees());
        let policy = self.policy.load();
        let decision = decide(webhook, review, &policy, now(), self.engine, &budget)?;
        Ok((response::render(review, &decision)?, decision))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "exemptions end by the wall clock"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Why a review has no answer.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error(transparent)]
    Render(#[from] RenderError),
}

fn answered(mut record: Record, body: Vec<u8>, decision: &Decision) -> Answer {
    record.decided(decision);
    Answer {
        status: StatusCode::OK,
        body: body.into(),
        record,
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
