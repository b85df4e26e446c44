//! Events about a sidecar that stands in for the central replicas. A sidecar may not create Events, so these come from
//! a replica once it is there again.

use crate::reconcile::events::event::ClusterEvent;

/// The sidecar scales the cluster.
pub(crate) fn stood_in() -> ClusterEvent {
    let message = "The sidecar in the head pod scales this cluster, because it saw no central replica of Rayfit \
                   for a while. It hands the cluster back.";
    ClusterEvent::warning("SidecarStandsIn", "Scaling", message.to_owned())
}

/// The central replicas scale the cluster again.
pub(crate) fn gave_back() -> ClusterEvent {
    let message =
        "Rayfit scales this cluster from outside again; the sidecar in the head pod stands by.";
    ClusterEvent::normal("SidecarStandsBy", "Scaling", message.to_owned())
}
