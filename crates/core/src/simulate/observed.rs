//! The objects and the GCS as a scaler observes them.

use crate::plan::{PlanSettings, followed_groups};
use crate::simulate::world::{World, WorldView};
use crate::snapshot::gcs::ClusterResourceState;
use crate::snapshot::{API_VERSION, ClusterId, History, KIND, OwnPods, Snapshot};

/// The cluster state that the GCS reports, with the memory in use where it counts; `None` if it
/// does not answer. Reports are dated by the clock of the process, which may be ahead.
pub fn gcs_state(
    world: &World,
    settings: &PlanSettings,
    ahead_s: f64,
) -> Option<ClusterResourceState> {
    let mut gcs = world.gcs_state()?;
    if gcs
        .node_states
        .iter()
        .all(|node| node.memory_in_use.is_none())
    {
        return Some(gcs);
    }
    // The controller asks agents for the memory of these groups alone, so that of others is not known to it
    // either.
    let followed = followed_groups(&world.view.cluster, settings);
    for node in &mut gcs.node_states {
        let is_followed = followed.contains(&node.ray_node_type_name);
        node.memory_in_use = node.memory_in_use.filter(|_| is_followed);
        if let Some(told) = &mut node.memory_in_use {
            told.at += ahead_s;
        }
    }
    Some(gcs)
}

/// The cluster's own pods, as watchers have them.
pub fn own_pods(view: &WorldView) -> OwnPods {
    let id = ClusterId::of(view.cluster.object());
    OwnPods::divide(id, view.pods.iter().cloned()).0
}

/// The state of the cluster, as watchers have its objects, and with what the GCS says.
pub fn snapshot(
    world: &World,
    pods: OwnPods,
    gcs: ClusterResourceState,
    time: String,
    history: &History,
) -> Snapshot {
    let view = &world.view;
    Snapshot {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        time,
        ray_cluster: (*view.cluster).clone(),
        pods,
        nodes: view.nodes.as_ref().map(|nodes| (**nodes).clone()),
        loads: (*view.loads).clone(),
        gcs,
        history: history.clone(),
    }
}
