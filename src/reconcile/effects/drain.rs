//! How Ray nodes are drained: which kind of drain a planned removal becomes.

use crate::plan::{self, RemovalCause};
use crate::reconcile::effects::effect::{Drain, DrainKind};
use crate::snapshot::NotANodeId;

/// The drain request for a planned removal. An idle Ray node is drained at once, unless its raylet
/// finds that it has work by now. A Ray node that has to go because of a maximum or a removed group
/// takes no new work and goes when it has none left. Its pod is deleted in a later round, once Ray
/// has stopped in it.
pub(crate) fn of(planned: &plan::NodeDrain) -> Result<Drain, NotANodeId> {
    let seconds = planned.idle_ms / 1000;
    let (kind, message) = match planned.cause {
        RemovalCause::Idle | RemovalCause::Stopped | RemovalCause::Unschedulable => (
            DrainKind::Idle,
            format!("Rayfit: idle for {seconds} seconds"),
        ),
        RemovalCause::GivesWay => (
            DrainKind::Idle,
            "Rayfit: other demand needs its room".to_owned(),
        ),
        RemovalCause::GroupMax => (DrainKind::WhenDone, above("its group")),
        RemovalCause::ClusterMax => (DrainKind::WhenDone, above("the cluster")),
        RemovalCause::GroupGone => (
            DrainKind::WhenDone,
            "Rayfit: its group is no longer in the RayCluster".to_owned(),
        ),
        RemovalCause::StopRequested => (DrainKind::WhenDone, "Rayfit: it is to leave".to_owned()),
    };
    Ok(Drain {
        pod: planned.pod.clone(),
        node_id: planned.node_id.parse()?,
        kind,
        group: planned.group.clone(),
        cause: planned.cause,
        message,
    })
}

fn above(what: &str) -> String {
    format!("Rayfit: {what} has more nodes than its maximum")
}
