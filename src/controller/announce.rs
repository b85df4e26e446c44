//! Kubernetes Events on RayClusters, published beside the rounds so that none waits for them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;

use super::clock::Clock;
use super::observe::Key;
use super::words;
use crate::reconcile::news::{News, NewsKind};

/// Events that wait to be published; more are dropped, and the log has them.
const WAITING: usize = 1024;

/// For how long an equal Event is counted instead of published anew.
const SERIES: Duration = Duration::from_mins(6);

/// Where news go.
#[derive(Clone, Default)]
pub struct Announcer {
    events: Option<mpsc::Sender<Announcement>>,
}

struct Announcement {
    about: About,
    news: News,
}

/// The RayCluster that an Event is on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct About {
    /// Its namespace and name.
    pub key: Key,
    /// Its UID.
    pub uid: String,
}

impl Announcer {
    /// Publishes with `client`, as the replica `instance`. The future has to be run.
    pub fn publishing(client: Client, instance: String) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let publisher = Publisher {
            client,
            instance,
            series: HashMap::new(),
        };
        (
            Self {
                events: Some(sender),
            },
            publisher.run(receiver),
        )
    }

    /// Publishes nothing: the head pod's account may not.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Tells the news of a round. They are in the log in any case.
    pub fn tell(&self, about: &About, news: &[News]) {
        for news in news {
            let cluster = about.key.to_string();
            match news.kind {
                NewsKind::Normal => {
                    tracing::info!(cluster, reason = news.reason, "{}", news.message);
                }
                NewsKind::Warning => {
                    tracing::warn!(cluster, reason = news.reason, "{}", news.message);
                }
            }
            if let Some(events) = &self.events {
                let announcement = Announcement {
                    about: about.clone(),
                    news: news.clone(),
                };
                if events.try_send(announcement).is_err() {
                    tracing::debug!(cluster, "an Event was dropped: too many are waiting");
                }
            }
        }
    }
}

struct Published {
    name: String,
    count: i32,
    at: Instant,
}

struct Publisher {
    client: Client,
    instance: String,
    series: HashMap<(String, &'static str, String), Published>,
}

impl Publisher {
    async fn run(mut self, mut announcements: mpsc::Receiver<Announcement>) {
        while let Some(Announcement { about, news }) = announcements.recv().await {
            self.series
                .retain(|_, published| published.at.elapsed() < SERIES);
            if let Err(error) = self.publish(&about, news).await {
                tracing::debug!(error = words::text(&error), cluster = %about.key, "an Event could not be published");
            }
        }
    }

    async fn publish(&mut self, about: &About, news: News) -> Result<(), kube::Error> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &about.key.namespace);
        let key = (about.uid.clone(), news.reason, news.message.clone());
        if let Some(published) = self.series.get_mut(&key) {
            published.count = published.count.saturating_add(1);
            published.at = Instant::now();
            let series = EventSeries {
                count: published.count,
                last_observed_time: MicroTime(Clock::timestamp()),
            };
            let patch = Patch::Merge(json!({ "series": series }));
            api.patch(&published.name, &PatchParams::default(), &patch)
                .await?;
            return Ok(());
        }
        let event = self.event(about, news);
        let name = event.metadata.name.clone().unwrap_or_default();
        api.create(&PostParams::default(), &event).await?;
        self.series.insert(
            key,
            Published {
                name,
                count: 1,
                at: Instant::now(),
            },
        );
        Ok(())
    }

    fn event(&self, about: &About, news: News) -> Event {
        let now = Clock::timestamp();
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
                name: Some(format!("{}.{:x}", about.key.name, now.as_nanosecond())),
                namespace: Some(about.key.namespace.to_string()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            action: Some(news.action.to_owned()),
            reason: Some(news.reason.to_owned()),
            note: Some(news.message),
            type_: Some(match news.kind {
                NewsKind::Normal => "Normal".to_owned(),
                NewsKind::Warning => "Warning".to_owned(),
            }),
            regarding: Some(regarding),
            related: news.pod.map(|pod| reference("Pod", "v1", &pod)),
            reporting_controller: Some("rayfit.dev/controller".to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}
