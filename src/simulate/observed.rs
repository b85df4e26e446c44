//! What a scaler observes of the world.

use crate::simulate::idle::Seen;
use crate::simulate::world::World;
use crate::snapshot::gcs::ClusterResourceState;
use crate::snapshot::{API_VERSION, ClusterId, History, KIND, NodeLoads, OwnPods, Snapshot};

/// The state of the cluster, as watchers have its objects, and with what the GCS says.
pub fn snapshot(
    world: &World,
    gcs: ClusterResourceState,
    time: String,
    history: &History,
) -> Snapshot {
    let view = &world.view;
    let id = ClusterId::of(view.cluster.object());
    let (pods, _) = OwnPods::divide(id, view.pods.iter().cloned());
    Snapshot {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        time,
        ray_cluster: (*view.cluster).clone(),
        pods,
        nodes: view.nodes.as_ref().map(|nodes| (**nodes).clone()),
        loads: NodeLoads::new(),
        gcs,
        history: history.clone(),
    }
}

/// The numbers of what there is to see.
pub(super) fn seen(world: &World) -> Seen {
    Seen {
        view: world.view.version,
        gcs: world.gcs_version(),
    }
}
