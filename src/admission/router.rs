//! The router: HTTP in, HTTP out.

use std::ops::ControlFlow;
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

use super::decide::{Decision, decide};
use super::limits::{AdmissionCapacity, AdmissionLimits, Refusal};
use super::new_pods::{OwnerName, OwnerReads, new_pod};
use super::review::{Review, ReviewError};
use super::tree::TreeBudget;
use super::{Webhook, deadline, response};
use crate::admission::record::Record;
use crate::initial_size::{LeftAsMade, NewPod, enlarged};
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
    capacity: AdmissionCapacity,
    metrics: Arc<Metrics>,
    owners: OwnerReads,
}

impl Admission {
    /// Webhooks that check objects under `policy`, and ask `owners` for the RayClusters of new pods.
    pub fn new(
        policy: Arc<ArcSwap<EffectivePolicy>>,
        metrics: Arc<Metrics>,
        limits: AdmissionLimits,
        owners: OwnerReads,
    ) -> Self {
        Self {
            policy,
            capacity: AdmissionCapacity::new(limits),
            metrics,
            owners,
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

/// The review of a new pod, while its RayCluster is read: as little as is needed then, because many may wait.
struct PodReview {
    uid: String,
    pod: NewPod,
    owner: OwnerName,
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
        .unwrap_or_else(|refusal| failed(Record::new(webhook), &refusal.into()));
    drop(in_flight);
    let Answer {
        status,
        body,
        record,
    } = answer;
    admission.metrics.observe(&record.count, start.elapsed());
    record.log(start.elapsed());

    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let content_type = match status {
        StatusCode::OK => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    match status {
        // The webhook clients of API servers wait this long, in seconds, and retry within their
        // timeout.
        StatusCode::TOO_MANY_REQUESTS => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        // The rest of the body need not be read.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
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
    let capacity = &admission.capacity;
    let held = capacity.read(body, &parts.headers, source).await?;
    // Reserved only now, so that slow senders do not keep out requests that have arrived.
    let place = capacity.enter()?;
    let reviewed = match capacity.large(&held, source).await? {
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
            let reviewed = tokio::task::spawn_blocking(move || {
                // Held here rather than by the caller, who may give up before this is done.
                let _held = (place, turn);
                admission.review(webhook, &held.bytes)
            });
            reviewed
                .await
                .unwrap_or_else(|_| ControlFlow::Break(failed(Record::new(webhook), &Fault::Panic)))
        }
    };
    Ok(match reviewed {
        ControlFlow::Break(answer) => answer,
        ControlFlow::Continue(pod) => admission.enlarge(*pod, deadline).await,
    })
}

impl Admission {
    /// Reviews one body. It goes on for a new pod, whose RayCluster has to be read first. A failure affects only this
    /// request.
    fn review(&self, webhook: Webhook, body: &[u8]) -> ControlFlow<Answer, Box<PodReview>> {
        let mut record = Record::new(webhook);
        let review = match Review::parse(body) {
            Ok(review) => review,
            Err(error) => return ControlFlow::Break(failed(record, &error.into())),
        };
        record.identify(&review);
        let budget = TreeBudget::of(self.capacity.limits.trees);
        if webhook == Webhook::Mutate && review.is_new_pod() {
            match caught(|| Ok(new_pod(&review, &budget)?)) {
                Ok(Ok((pod, owner))) => {
                    record.name(&review);
                    let uid = review.uid.into_owned();
                    return ControlFlow::Continue(Box::new(PodReview {
                        uid,
                        pod,
                        owner,
                        record,
                    }));
                }
                Ok(Err(unfit)) => {
                    let decided = || Ok(Decision::LeftAsMade(unfit));
                    return ControlFlow::Break(answered(record, &review, decided));
                }
                Err(fault) => return ControlFlow::Break(failed(record, &fault)),
            }
        }
        let mut answer = answered(record, &review, || {
            #[expect(
                clippy::disallowed_methods,
                reason = "exemptions end by the wall clock"
            )]
            let now = Timestamp::now();
            Ok(decide(webhook, &review, &self.policy.load(), now, &budget)?)
        });
        // Most records are not logged, and reading the name costs time.
        if answer.record.is_logged() {
            answer.record.name(&review);
        }
        ControlFlow::Break(answer)
    }

    /// Answers the review of a pod by what its RayCluster says. A pod is never refused.
    async fn enlarge(&self, waiting: PodReview, deadline: Instant) -> Answer {
        let PodReview {
            uid,
            pod,
            owner,
            record,
        } = waiting;
        let review = Review {
            uid: uid.into(),
            ..Review::default()
        };
        let until = deadline.checked_sub(TO_ANSWER).unwrap_or(deadline);
        let owner = self.owners.read(owner, until).await;
        answered(record, &review, || {
            let enlarged = match owner {
                Ok(Some(owner)) => enlarged(&pod, &owner, self.owners.now()),
                Ok(None) => Err(LeftAsMade::AnotherOwner),
                Err(unread) => return Ok(Decision::OwnerUnread(unread)),
            };
            Ok(enlarged.map_or_else(Decision::LeftAsMade, Decision::Enlarged))
        })
    }
}

/// The fault because of which a review has no decision.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error("the answer could not be written as JSON: {0}; please report this as a bug of Rayfit")]
    Render(#[from] serde_json::Error),
    #[error("rayfit failed on this object; its log says where. Please report this as a bug")]
    Panic,
}

fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Fault::Panic))
}

/// Decides about a review, and writes the answer.
fn answered(
    mut record: Record,
    review: &Review<'_>,
    decide: impl FnOnce() -> Result<Decision, Fault>,
) -> Answer {
    let rendered = caught(|| {
        let decision = decide()?;
        Ok((response::render(review, &decision)?, decision))
    });
    match rendered {
        Ok((body, decision)) => {
            record.decided(&decision);
            Answer {
                status: StatusCode::OK,
                body: body.into(),
                record,
            }
        }
        Err(fault) => failed(record, &fault),
    }
}

fn failed(mut record: Record, fault: &Fault) -> Answer {
    use ReviewOutcome::{BadRequest, Deadline, Overload, Panic};
    // API servers treat every status except 200 as a failed call, and apply the webhook's failure
    // policy.
    let (status, outcome) = match fault {
        Fault::Refused(Refusal::ContentType) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, BadRequest),
        Fault::Refused(Refusal::TooLong(_)) | Fault::Review(ReviewError::TooMuch(_)) => {
            (StatusCode::PAYLOAD_TOO_LARGE, BadRequest)
        }
        Fault::Refused(Refusal::Slow) => (StatusCode::REQUEST_TIMEOUT, BadRequest),
        Fault::Refused(Refusal::Broken) | Fault::Review(_) => (StatusCode::BAD_REQUEST, BadRequest),
        Fault::Refused(Refusal::Busy) => (StatusCode::TOO_MANY_REQUESTS, Overload),
        Fault::Refused(Refusal::Deadline) => (StatusCode::GATEWAY_TIMEOUT, Deadline),
        Fault::Render(_) | Fault::Panic => (StatusCode::INTERNAL_SERVER_ERROR, Panic),
    };
    record.count.outcome = outcome;
    record.problem = fault.to_string();
    Answer {
        status,
        body: record.problem.clone().into(),
        record,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_answered_and_quotes_nothing_of_the_object() {
        let answer = answered(Record::new(Webhook::Validate), &Review::default(), || {
            panic!("hunter2")
        });
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(answer.record.count.outcome, ReviewOutcome::Panic);
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(
            body.contains("report this") && !body.contains("hunter2"),
            "{body}"
        );
    }
}
