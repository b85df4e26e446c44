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
use rayfit_core::dns_name::Key;
use rayfit_core::initial_size::{LeftAsMade, NewPod, enlarged};
use rayfit_core::policy::EffectivePolicy;
use tokio::time::{Duration, Instant};

use super::decide::{ReviewDecision, decide};
use super::limits::AdmissionCapacity;
use super::new_pods::{OwnerReads, new_pod};
use super::review::{Review, ReviewError};
use super::tree::TreeArena;
use super::{Webhook, deadline, response};
use crate::admission::record::ReviewRecord;
use crate::apiserver::server_time::own_timestamp;
use crate::shares::ConnectionSource;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::CountedGauge;
use crate::telemetry::reviews::ReviewOutcome;

/// The state of the webhooks.
pub struct Admission {
    /// The policies and facts by which objects are checked. They can be replaced at any time; the next request uses the
    /// new ones.
    pub policy: Arc<ArcSwap<EffectivePolicy>>,
    /// The room for requests.
    pub capacity: AdmissionCapacity,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The reads of the RayClusters of new pods.
    pub owners: OwnerReads,
}

/// The routes of both webhooks: `POST /mutate` and `POST /validate`.
pub fn router(admission: Arc<Admission>) -> Router {
    let to = |webhook| post(move |State(admission), request| serve(admission, webhook, request));
    Router::new()
        // The same paths for every kind, because the kind is in the review.
        .route("/mutate", to(Webhook::Mutate))
        .route("/validate", to(Webhook::Validate))
        .with_state(admission)
}

/// The result for a body: the answer, and the record for log and metrics.
struct Answer {
    status: StatusCode,
    body: Bytes,
    record: ReviewRecord,
}

/// The time that is kept to answer after the RayCluster was read, or was not.
const TO_ANSWER: Duration = Duration::from_millis(100);

async fn serve(admission: Arc<Admission>, webhook: Webhook, request: Request) -> Response {
    let start = Instant::now();
    let in_flight = CountedGauge::of(&admission.metrics.in_flight);
    let limit = deadline::of_query(request.uri().query());
    let answer = tokio::time::timeout(limit, answer(&admission, webhook, request, start + limit))
        .await
        .unwrap_or(Err(ReviewError::Deadline))
        .unwrap_or_else(|error| failed(ReviewRecord::new(webhook), &error));
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
) -> Result<Answer, ReviewError> {
    let (parts, body) = request.into_parts();
    let source = parts.extensions.get::<ConnectionSource>().copied();
    let source = source.unwrap_or_default();
    let capacity = &admission.capacity;
    let body = capacity.read(body, &parts.headers, source).await?;
    // Reserved only now, so that slow senders do not keep out requests that have arrived.
    let place = capacity.reviews.clone().try_acquire_owned();
    let place = place.map_err(|_| ReviewError::Busy)?;
    let reviewed = match capacity.large(&body, source).await? {
        None => {
            let reviewed = admission.review(webhook, &body.bytes);
            // A pod waits for its RayCluster without the body, and without a place of others.
            drop((place, body));
            reviewed
        }
        Some(turn) => {
            if Instant::now() >= deadline {
                return Err(ReviewError::Deadline);
            }
            let admission = admission.clone();
            let reviewed = tokio::task::spawn_blocking(move || {
                // Held here rather than by the caller, who may give up before this is done.
                let _held = (place, turn);
                admission.review(webhook, &body.bytes)
            });
            reviewed.await.unwrap_or_else(|_| {
                let record = ReviewRecord::new(webhook);
                ControlFlow::Break(failed(record, &ReviewError::Panic))
            })
        }
    };
    Ok(match reviewed {
        ControlFlow::Break(answer) => answer,
        ControlFlow::Continue((pod, owner, record)) => {
            admission.enlarge(&pod, owner, *record, deadline).await
        }
    })
}

impl Admission {
    /// Reviews one body. It goes on for a new pod, whose RayCluster has to be read first. A failure affects only this
    /// request.
    fn review(
        &self,
        webhook: Webhook,
        body: &[u8],
    ) -> ControlFlow<Answer, (NewPod, Key, Box<ReviewRecord>)> {
        let mut record = ReviewRecord::new(webhook);
        let review = match Review::parse(body) {
            Ok(review) => review,
            Err(error) => return ControlFlow::Break(failed(record, &error)),
        };
        record.identify(&review);
        let arena = TreeArena::of(self.capacity.limits.trees);
        let (group, kind) = (&*review.kind.group, &*review.kind.kind);
        let is_new_pod =
            (group, kind, &*review.sub_resource) == ("", "Pod", "") && review.operation == "CREATE";
        if webhook == Webhook::Mutate && is_new_pod {
            match caught(|| new_pod(&review, &arena)) {
                // As little is kept as the answer needs, because many pods may wait for their RayClusters.
                Ok(Ok((pod, owner))) => {
                    record.name(&review);
                    return ControlFlow::Continue((pod, owner, Box::new(record)));
                }
                Ok(Err(unfit)) => {
                    let decided = || Ok(ReviewDecision::LeftAsMade(unfit));
                    return ControlFlow::Break(answered(record, &review, decided));
                }
                Err(error) => return ControlFlow::Break(failed(record, &error)),
            }
        }
        let mut answer = answered(record, &review, || {
            // Exemptions end by the wall clock.
            let now = own_timestamp();
            decide(webhook, &review, &self.policy.load(), now, &arena)
        });
        // Most records are not logged, and reading the name costs time.
        if answer.record.is_logged() {
            answer.record.name(&review);
        }
        ControlFlow::Break(answer)
    }

    /// Answers the review of a pod by what its RayCluster says. A pod is never refused.
    async fn enlarge(
        &self,
        pod: &NewPod,
        owner: Key,
        record: ReviewRecord,
        deadline: Instant,
    ) -> Answer {
        let review = Review {
            uid: record.uid.clone().into(),
            ..Review::default()
        };
        let until = deadline.checked_sub(TO_ANSWER).unwrap_or(deadline);
        let owner = self.owners.read(owner, until).await;
        answered(record, &review, || {
            let enlarged = match owner {
                Ok(Some(owner)) => enlarged(pod, &owner, self.owners.reader.now()),
                Ok(None) => Err(LeftAsMade::AnotherOwner),
                Err(unread) => return Ok(ReviewDecision::OwnerUnread(unread)),
            };
            Ok(enlarged.map_or_else(ReviewDecision::LeftAsMade, ReviewDecision::Enlarged))
        })
    }
}

fn caught<T>(work: impl FnOnce() -> Result<T, ReviewError>) -> Result<T, ReviewError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(ReviewError::Panic))
}

/// Decides about a review, and writes the answer.
fn answered(
    mut record: ReviewRecord,
    review: &Review<'_>,
    decide: impl FnOnce() -> Result<ReviewDecision, ReviewError>,
) -> Answer {
    let rendered = caught(|| {
        let decision = decide()?;
        let body = response::render(review, &decision);
        let body = body.map_err(|error| ReviewError::Render(error.to_string()))?;
        Ok((body, decision))
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
        Err(error) => failed(record, &error),
    }
}

fn failed(mut record: ReviewRecord, error: &ReviewError) -> Answer {
    use ReviewOutcome::{BadRequest, Deadline, Overload, Panic};
    // API servers treat every status except 200 as a failed call, and apply the webhook's failure
    // policy.
    let (status, outcome) = match error {
        ReviewError::ContentType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, BadRequest),
        ReviewError::TooLong(_) | ReviewError::TooMuch(_) => {
            (StatusCode::PAYLOAD_TOO_LARGE, BadRequest)
        }
        ReviewError::Slow => (StatusCode::REQUEST_TIMEOUT, BadRequest),
        ReviewError::Busy => (StatusCode::TOO_MANY_REQUESTS, Overload),
        ReviewError::Deadline => (StatusCode::GATEWAY_TIMEOUT, Deadline),
        ReviewError::Render(_) | ReviewError::Panic => (StatusCode::INTERNAL_SERVER_ERROR, Panic),
        _ => (StatusCode::BAD_REQUEST, BadRequest),
    };
    record.count.outcome = outcome;
    record.problem = error.to_string();
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
        let answer = answered(
            ReviewRecord::new(Webhook::Validate),
            &Review::default(),
            || panic!("hunter2"),
        );
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(answer.record.count.outcome, ReviewOutcome::Panic);
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(
            body.contains("report this") && !body.contains("hunter2"),
            "{body}"
        );
    }
}
