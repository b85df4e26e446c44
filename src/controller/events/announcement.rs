//! What is told, and of which RayCluster.

use crate::controller::observe::Key;
use crate::reconcile::events::event::ClusterEvent;

/// An Event to be published.
#[derive(Debug, Clone)]
pub(super) struct Announcement {
    pub(super) about: About,
    pub(super) news: ClusterEvent,
}

/// The RayCluster that an Event is on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct About {
    /// Its namespace and name.
    pub key: Key,
    /// Its UID.
    pub uid: String,
}
