//! Reading a cluster's objects as they are stored, before it may grow within budgets: a watch may lag
//! behind what the owner before this one did.

use serde::Deserialize;

use crate::controller::act::writer::Writer;
use crate::controller::clock::Clock;
use crate::controller::eligibility::EligibilityCheck;
use crate::reconcile::{Failure, RoundMemory};
use crate::snapshot::pod_object::PodObject;
use crate::snapshot::{ClusterId, OwnPods, Snapshot};

#[derive(Deserialize)]
struct PodList {
    items: Vec<PodObject>,
}

/// Reads the RayCluster and its pods, if that is needed. If the snapshot is older, that is done again
/// at the next look.
pub async fn read_anew(
    judge: &EligibilityCheck,
    writer: &Writer,
    memory: &mut RoundMemory,
    snapshot: &Snapshot,
    clock: &Clock,
) {
    if !memory.needs_read(&snapshot.pods, clock.wall()) {
        return;
    }
    match pods(judge, writer, snapshot).await {
        Ok(Some(pods)) => memory.read_pods(&pods, clock.wall()),
        Ok(None) => {}
        Err(failure) => tracing::debug!(?failure, cluster = %judge.key, "not read"),
    }
}

/// The pods, unless the snapshot does not show what is stored.
async fn pods(
    judge: &EligibilityCheck,
    writer: &Writer,
    snapshot: &Snapshot,
) -> Result<Option<OwnPods>, Failure> {
    let turn = writer.turn().await?;
    let cluster = turn.get_cluster().await?;
    judge.learn(&cluster);
    let list: PodList = turn.list_pods().await?;
    let id = ClusterId::of(&cluster);
    let (pods, _) = OwnPods::divide(id, list.items);
    let generation = |cluster: &serde_json::Value| cluster["metadata"]["generation"].clone();
    let is_seen = generation(&cluster) == generation(snapshot.ray_cluster.object())
        && pods
            .iter()
            .all(|pod| snapshot.pods.find(pod.name).is_some());
    Ok(is_seen.then_some(pods))
}
