//! Kubernetes Events on RayClusters, published beside the rounds so that none waits for them, and
//! within a budget for each cluster and one for all.

pub mod bucket;
mod outbox;
mod publish;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::controller::act::writer::Requests;
use crate::controller::clock::Clock;
use crate::controller::events::outbox::Outbox;
use crate::controller::events::publish::Publisher;
use crate::controller::metrics::RoundMetrics;
use crate::controller::observe::Key;
use crate::reconcile::events::event::{ClusterEvent, EventType};

/// Where news go.
#[derive(Clone, Default)]
pub struct Announcer {
    desk: Option<Arc<Desk>>,
}

/// What those who tell and the one who publishes share.
struct Desk {
    outbox: Mutex<Outbox>,
    filled: Notify,
    measures: RoundMetrics,
    clock: Clock,
}

/// An Event to be published.
#[derive(Debug, Clone)]
struct Announcement {
    about: About,
    news: ClusterEvent,
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
    /// Publishes as the replica `instance`, after all other `requests` and at most `share` a
    /// second. The future has to be run.
    pub fn publishing(
        requests: Requests,
        share: u32,
        instance: String,
        measures: RoundMetrics,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let desk = Arc::new(Desk {
            outbox: Mutex::default(),
            filled: Notify::new(),
            measures,
            clock: Clock::default(),
        });
        let publisher = Publisher::new(requests, share, instance, desk.clone());
        (Self { desk: Some(desk) }, publisher.run())
    }

    /// Publishes nothing: the head pod's account may not.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Tells the news of a round. They are in the log too; what is beyond the cluster's budget of
    /// Events only where the log is a detailed one, so that the log is not flooded in their place.
    pub fn tell(&self, about: &About, news: &[ClusterEvent]) {
        for news in news {
            let is_told = self.desk.as_ref().is_none_or(|desk| desk.put(about, news));
            let (cluster, reason) = (about.key.to_string(), news.reason);
            match news.kind {
                _ if !is_told => {
                    tracing::debug!(cluster, reason, "not told as an Event: {}", news.message);
                }
                EventType::Normal => tracing::info!(cluster, reason, "{}", news.message),
                EventType::Warning => tracing::warn!(cluster, reason, "{}", news.message),
            }
        }
    }
}

impl Desk {
    fn put(&self, about: &About, news: &ClusterEvent) -> bool {
        let announcement = Announcement {
            about: about.clone(),
            news: news.clone(),
        };
        let mut outbox = self.outbox();
        let is_told = outbox.put(announcement, self.clock.steady());
        self.measures.events_left_out(outbox.count_left_out());
        drop(outbox);
        self.filled.notify_one();
        is_told
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // No code panics while it holds the lock, and an outbox is whole at every moment.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
