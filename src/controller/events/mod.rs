//! Kubernetes Events on RayClusters. They are published beside the rounds, so that no round waits
//! for them, and within one budget for each cluster and one for all.

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

/// Takes in Events and publishes them.
#[derive(Clone, Default)]
pub struct Announcer {
    desk: Option<Arc<Desk>>,
}

/// What the announcers and the publisher share.
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
    /// The RayCluster's namespace and name.
    pub key: Key,
    /// The RayCluster's UID.
    pub uid: String,
}

impl Announcer {
    /// Publishes as the replica `instance`, after all other `requests`, and at most `share` Events
    /// in a second. The returned future has to be run.
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

    /// Publishes nothing, because the head pod's service account may not create Events.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Publishes the Events of a round, and logs them. Events beyond the cluster's budget are
    /// logged only in detail, so that they do not flood the log instead.
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
        // No code panics while it holds the lock, and the outbox is consistent at every moment.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
