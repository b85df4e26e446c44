//! Kubernetes Events on RayClusters. They are published beside the rounds, so that no round waits
//! for them, and within one budget for each cluster and one for all.
//!
//! In: Events as data. Out: Events in the API server. Invariant: no cluster uses up the budget of the others.

use parking_lot::Mutex;

mod outbox;
mod publish;
#[cfg(test)]
mod tests;

pub use outbox::About;

use std::sync::Arc;

use rayfit_core::reconcile::events::event::{ClusterEvent, EventType};
use tokio::sync::Notify;

use crate::controller::act::writer::Requests;
use crate::controller::events::outbox::QueuedEvent;
use crate::controller::events::publish::{Desk, Publisher};
use crate::telemetry::controller::ScalingMetrics;

/// Takes in Events and publishes them; by default none.
#[derive(Clone, Default)]
pub struct Announcer {
    desk: Option<Arc<Desk>>,
}

impl Announcer {
    /// Publishes as the replica `instance`, after all other `requests`, and at most `share` Events
    /// in a second. The returned future has to be run.
    pub fn publishing(
        requests: Requests,
        share: u32,
        instance: String,
        measures: Arc<ScalingMetrics>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let desk = Arc::new(Desk {
            outbox: Mutex::default(),
            filled: Notify::new(),
            measures,
        });
        let publisher = Publisher::new(requests, share, instance, desk.clone());
        (Self { desk: Some(desk) }, publisher.run())
    }

    /// Publishes the Events of a round, and logs them.
    pub fn announce(&self, about: &About, events: &[ClusterEvent]) {
        for event in events {
            let is_queued = self.desk.as_ref().is_none_or(|desk| {
                let mut outbox = desk.outbox.lock();
                let is_queued = outbox.put(QueuedEvent {
                    about: about.clone(),
                    event: event.clone(),
                });
                let left_out = std::mem::take(&mut outbox.left_out);
                drop(outbox);
                if left_out > 0 {
                    let events = &desk.measures.events;
                    let counter = events.get_or_create(&[("outcome", "left-out")]);
                    counter.inc_by(left_out);
                }
                desk.filled.notify_one();
                is_queued
            });
            let (cluster, reason) = (about.key.to_string(), event.reason);
            match event.kind {
                // An Event beyond the cluster's budget is logged only in detail, so that it does
                // not flood the log instead.
                _ if !is_queued => {
                    tracing::debug!(
                        cluster,
                        reason,
                        "not published as an Event: {}",
                        event.message
                    );
                }
                EventType::Normal => tracing::info!(cluster, reason, "{}", event.message),
                EventType::Warning => tracing::warn!(cluster, reason, "{}", event.message),
            }
        }
    }
}
