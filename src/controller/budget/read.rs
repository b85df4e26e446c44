//! Reading a cluster's objects as they are stored, before it may grow within budgets: a watch may lag
//! behind what the owner before this one did.

use serde::Deserialize;
use serde_json::Value;

use crate::controller::act::writer::Writer;
use crate::controller::eligibility::EligibilityCheck;
use crate::reconcile::Failure;
use crate::snapshot::pod_object::PodObject;
use crate::snapshot::{ClusterId, OwnPods};

#[derive(Deserialize)]
struct PodList {
    items: Vec<PodObject>,
}

/// The RayCluster and its pods as they are stored, if they can be read.
pub async fn read_anew(judge: &EligibilityCheck, writer: &Writer) -> Option<(Value, OwnPods)> {
    let read = read(judge, writer).await;
    read.inspect_err(|failure| tracing::debug!(?failure, cluster = %judge.key, "not read"))
        .ok()
}

async fn read(judge: &EligibilityCheck, writer: &Writer) -> Result<(Value, OwnPods), Failure> {
    let turn = writer.turn().await?;
    let cluster = turn.get_cluster().await?;
    judge.learn(&cluster);
    let list: PodList = turn.list_pods().await?;
    let (pods, _) = OwnPods::divide(ClusterId::of(&cluster), list.items);
    Ok((cluster, pods))
}
