//! An announcement: an Event, and the RayCluster that it is on.

use crate::controller::observe::Key;
use crate::reconcile::events::event::ClusterEvent;

/// An Event to be published.
#[derive(Debug, Clone)]
pub(super) struct QueuedEvent {
    pub(super) about: About,
    pub(super) event: ClusterEvent,
}

/// The RayCluster that an Event is on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct About {
    /// The RayCluster's namespace and name.
    pub key: Key,
    /// The RayCluster's UID.
    pub uid: String,
}
