//! Kubernetes Events on RayClusters, published beside the rounds so that none waits for them, and
//! within a budget for each cluster and one for all.

mod announcement;
pub mod bucket;
mod desk;
mod outbox;
mod publish;
#[cfg(test)]
mod tests;

pub use announcement::About;

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::controller::act::writer::Requests;
use crate::controller::clock::Clock;
use crate::controller::events::desk::Desk;
use crate::controller::events::publish::Publisher;
use crate::controller::metrics::RoundMetrics;
use crate::reconcile::events::event::{ClusterEvent, EventType};

/// Where news go.
#[derive(Clone, Default)]
pub struct Announcer {
    desk: Option<Arc<Desk>>,
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
