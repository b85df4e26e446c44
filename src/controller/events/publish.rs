//! The publisher: sends Events, one after the other.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::clock::Clock as _;
use governor::{Quota, RateLimiter};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams, Request};
use parking_lot::Mutex;
use rayfit_core::flow_control::LAST;
use rayfit_core::reconcile::effects::failure::{Failure, Meaning};
use rayfit_core::reconcile::events::event::{ClusterEvent, EventType};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::apiserver::pages::Built;
use crate::apiserver::server_time::own_timestamp;
use crate::controller::act::writer::{LONGEST, Requests};
use crate::controller::clock::LimiterClock;
use crate::controller::events::outbox::{About, Outbox, QueuedEvent};
use crate::telemetry::controller::ScalingMetrics;

/// The time for which an equal Event raises the count of the published one instead of being
/// published anew.
const SERIES: Duration = Duration::from_mins(6);

/// The interval at which left-out Events are summed up.
const TICK: Duration = Duration::from_secs(5);

/// The Events that announcers put down and the publisher takes, with what both need for it.
pub(super) struct Desk {
    pub(super) outbox: Mutex<Outbox>,
    pub(super) filled: Notify,
    pub(super) measures: Arc<ScalingMetrics>,
}

/// Publishes the Events in the outbox.
pub(crate) struct Publisher {
    requests: Requests,
    instance: String,
    desk: Arc<Desk>,
    /// The most Events of all clusters together in a second.
    share: NonZeroU32,
    series: HashMap<Equal, Published>,
    /// The time of the last summary.
    ticked: Instant,
}

/// The key of equal Events: the cluster, the reason and the message.
type Equal = (String, &'static str, String);

struct Published {
    name: String,
    count: i32,
    at: Instant,
}

impl Publisher {
    pub(crate) fn new(requests: Requests, share: u32, instance: String, desk: Arc<Desk>) -> Self {
        Self {
            requests,
            instance,
            desk,
            share: NonZeroU32::new(share).unwrap_or(NonZeroU32::MIN),
            series: HashMap::new(),
            ticked: Instant::now(),
        }
    }

    pub(crate) async fn run(mut self) {
        let clock = LimiterClock::default();
        let rate = RateLimiter::direct_with_clock(Quota::per_second(self.share), clock);
        loop {
            let QueuedEvent { about, event } = self.next().await;
            while let Err(later) = rate.check() {
                sleep(later.wait_time_from(clock.now())).await;
            }
            let published = self.publish(&about, event).await;
            let outcome = if published.is_ok() {
                "published"
            } else {
                "failed"
            };
            let events = &self.desk.measures.events;
            events.get_or_create(&[("outcome", outcome)]).inc();
            if let Err(failure) = published {
                tracing::debug!(%failure, cluster = %about.key, "an Event could not be published");
            }
        }
    }

    async fn next(&mut self) -> QueuedEvent {
        loop {
            // The outbox is ticked on time even while there is always an Event to publish.
            if self.ticked.elapsed() >= TICK {
                self.ticked = Instant::now();
                self.desk.outbox.lock().tick();
            }
            let next = self.desk.outbox.lock().waiting.pop();
            if let Some(next) = next {
                return next;
            }
            tokio::select! {
                () = self.desk.filled.notified() => {}
                () = sleep(TICK) => {}
            }
        }
    }

    async fn publish(&mut self, about: &About, event: ClusterEvent) -> Result<(), Failure> {
        self.series
            // A series ends after as long as in client-go's recorder.
            .retain(|_, published| published.at.elapsed() < SERIES);
        let events = Request::new(format!(
            "/apis/events.k8s.io/v1/namespaces/{}/events",
            about.key.namespace
        ));
        let equal = (about.uid.clone(), event.reason, event.message.clone());
        if let Some(published) = self.series.get(&equal) {
            // The API server refuses a series of fewer than two Events. (Kubernetes,
            // `core/validation/events.go`.)
            let count = published.count.saturating_add(1);
            let series = EventSeries {
                count,
                last_observed_time: MicroTime(own_timestamp()),
            };
            let patch = Patch::Merge(json!({ "series": series }));
            let patched = events.patch(&published.name, &PatchParams::default(), &patch);
            match self.send(about, patched).await {
                // The Event has expired or was deleted: as client-go's recorder does, it is published
                // anew.
                Err(failure) if failure.meaning() == Meaning::Gone => {
                    self.series.remove(&equal);
                }
                Err(failure) => return Err(failure),
                Ok(()) => {
                    if let Some(published) = self.series.get_mut(&equal) {
                        published.count = count;
                        published.at = Instant::now();
                    }
                    return Ok(());
                }
            }
        }
        let event = self.event(about, event);
        let name = event.metadata.name.clone().unwrap_or_default();
        let body = serde_json::to_vec(&event).unwrap_or_default();
        self.send(about, events.create(&PostParams::default(), body))
            .await?;
        let published = Published {
            name,
            count: 1,
            at: Instant::now(),
        };
        self.series.insert(equal, published);
        Ok(())
    }

    /// Sends a request after all requests that scale clusters.
    async fn send(&self, about: &About, request: Built) -> Result<(), Failure> {
        let request = request.map_err(|error| Failure::NotSent(error.to_string()))?;
        let passed = self.requests.gate.pass(&LAST.into()).await;
        let _pass = passed.map_err(|not| Failure::NotAdmitted(not.to_string()))?;
        let flow = about.key.to_string().into();
        let sent = (self.requests).send::<IgnoredAny>(&flow, request, LONGEST);
        sent.await.map(drop)
    }

    fn event(&self, about: &About, event: ClusterEvent) -> Event {
        let now = own_timestamp();
        let reference = |kind: &str, version: &str, name: &str| ObjectReference {
            api_version: Some(version.to_owned()),
            kind: Some(kind.to_owned()),
            name: Some(name.to_owned()),
            namespace: Some(about.key.namespace.to_string()),
            ..ObjectReference::default()
        };
        let mut regarding = reference("RayCluster", "ray.io/v1", &about.key.name);
        regarding.uid = Some(about.uid.clone());
        Event {
            metadata: ObjectMeta {
                // The name has the form that client-go gives Events.
                name: Some(format!("{}.{:x}", about.key.name, now.as_nanosecond())),
                namespace: Some(about.key.namespace.to_string()),
                ..ObjectMeta::default()
            },
            // Unlike the older group, this one requires the time, the action and the reporter.
            // (Kubernetes, `core/validation/events.go`.)
            event_time: Some(MicroTime(now)),
            action: Some(event.action.to_owned()),
            reason: Some(event.reason.to_owned()),
            note: Some(event.message),
            type_: Some(match event.kind {
                EventType::Normal => "Normal".to_owned(),
                EventType::Warning => "Warning".to_owned(),
            }),
            regarding: Some(regarding),
            related: event.pod.map(|pod| reference("Pod", "v1", &pod)),
            reporting_controller: Some("rayfit.dev/controller".to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::{Response, StatusCode};
    use kube::Client;
    use kube::client::Body;

    use super::*;
    use crate::apiserver::{Gate, Patience};
    use crate::controller::observe::Key;

    /// An API server that no longer has any Event; it writes down the methods of requests.
    fn forgetful(seen: &Arc<Mutex<Vec<String>>>) -> Client {
        let seen = Arc::clone(seen);
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let method = request.method().to_string();
            let is_patch = method == "PATCH";
            seen.lock().push(method);
            let (code, body) = if is_patch {
                let gone = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Failure", "code": 404, "reason": "NotFound", "message": "not found" });
                (StatusCode::NOT_FOUND, gone)
            } else {
                (StatusCode::CREATED, json!({}))
            };
            let body = Body::from(body.to_string().into_bytes());
            let answer = Response::builder().status(code).body(body);
            async move { Ok::<_, Infallible>(answer.unwrap()) }
        });
        Client::new(service, "ray")
    }

    #[tokio::test]
    async fn an_event_that_is_gone_is_published_anew() {
        let seen = Arc::default();
        let requests = Requests {
            client: forgetful(&seen),
            gate: Gate::new(50, 100, Patience::default()),
        };
        let desk = Arc::new(Desk {
            outbox: Mutex::default(),
            filled: Notify::new(),
            measures: Arc::default(),
        });
        let mut publisher = Publisher::new(requests, 10, "a".to_owned(), desk);
        let about = About {
            key: Key::new("ray", "demo").unwrap(),
            uid: "u".to_owned(),
        };
        let event = || ClusterEvent::warning("CannotFit", "Scaling", "1 x {CPU: 9}".to_owned());
        publisher.publish(&about, event()).await.unwrap();
        publisher.publish(&about, event()).await.unwrap();
        assert_eq!(*seen.lock(), ["POST", "PATCH", "POST"]);
        assert_eq!(publisher.series.len(), 1, "it is counted on");
    }
}
