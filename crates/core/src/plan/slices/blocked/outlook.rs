//! The outlook that node autoscalers and the scheduler give a pod without a Kubernetes node.

use crate::snapshot::node_prospect::{NodeOutlook, NodeProspect};
use crate::snapshot::pod::Pod;

/// Seconds for which a node is waited for that is said to come, from when that was said first.
///
/// So long these programs themselves wait for one before they take it for failed: cluster-autoscaler
/// by its flag `--max-node-provision-time`, 15 minutes by default, and Karpenter by
/// `registrationTimeout` in `pkg/controllers/nodeclaim/lifecycle/liveness.go`, 15 minutes too. What is
/// said again without the contrary in between does not begin it anew: otherwise a group whose nodes
/// never join would be waited for without end.
const NODE_COMES_S: f64 = 900.0;

/// The most seconds by which the clock of a node autoscaler may be ahead.
const AHEAD_S: f64 = 60.0;

/// The outlook of a pod for a Kubernetes node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outlook<'a> {
    /// One is on its way, or room is made on one.
    Coming,
    /// A node autoscaler says that none can come, and none says the contrary.
    NoNode(&'a NodeProspect),
    /// Nothing is said that still counts.
    Unsaid,
}

/// The outlook of a pod that has no Kubernetes node yet.
pub(crate) fn outlook<'a>(pod: &Pod<'a>, now: f64) -> Outlook<'a> {
    // The scheduler is about to make room on the node that it has nominated. Others may nominate one
    // too, and might never take that back; of the time of a nomination nothing is known.
    let nominated = pod.object.status.nominated_node_name.as_deref();
    let is_nominated = nominated.is_some_and(|node| !node.is_empty());
    let is_young = || pod.created().is_none_or(|created| is_recent(created, now));
    // Two node autoscalers may be at work, and each says of the pods of the other that no node can
    // come. So the latest word of each counts, and one that makes a node is believed.
    if is_nominated && is_young() || is_said_to_come(pod, now) {
        return Outlook::Coming;
    }
    let mut prospects = pod.object.node_prospects.iter();
    let none = prospects.find(|one| one.node == NodeOutlook::None);
    none.map_or(Outlook::Unsaid, Outlook::NoNode)
}

/// True if a node autoscaler says that it makes a node for the pod, and that may still come.
pub(crate) fn is_said_to_come(pod: &Pod<'_>, now: f64) -> bool {
    pod.object.node_prospects.iter().any(|one| {
        let is_young = || one.since().is_some_and(|since| is_recent(since, now));
        one.node == NodeOutlook::Coming && is_young()
    })
}

fn is_recent(since: f64, now: f64) -> bool {
    (-AHEAD_S..NODE_COMES_S).contains(&(now - since))
}
