//! Early ends: pods that ended before Ray ran in them, until Ray runs in one that was made later.
//!
//! A single pod may end so because of its Kubernetes node, or because the head was slow. With the
//! second one in a row their group counts as blocked.

use std::collections::BTreeMap;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::slices::blocked::evidence::Evidence;
use crate::snapshot::history::EarlyEnds;
use crate::snapshot::pod::Pod;

/// Seconds by which a pod may seem older than it is: Kubernetes writes whole seconds.
const ROUNDED_S: f64 = 1.0;

/// The most pods that are remembered of each group: enough to tell one from another that was seen
/// before.
const PODS: usize = 3;

/// Memory of early ends after a decision.
pub(crate) fn update(
    decided: &Decided<'_>,
    evidence: &Evidence<'_>,
) -> BTreeMap<String, EarlyEnds> {
    let mut memories = decided.situation.history().early_ends.clone();
    let mut early_pods = evidence.early_ends.clone();
    // The order of pods in a snapshot is not to decide which of them are remembered.
    early_pods.sort_unstable_by_key(|pod| pod.name);
    for pod in early_pods {
        if decided.config.number(pod.group).is_none() {
            continue;
        }
        let ends = memories.entry(pod.group.to_owned()).or_default();
        ends.at = decided.situation.now;
        if !ends.pods.iter().any(|one| one == pod.name) {
            ends.pods.push(pod.name.to_owned());
            let surplus = ends.pods.len().saturating_sub(PODS);
            ends.pods.drain(..surplus);
        }
    }
    let started = started(!memories.is_empty(), decided);
    memories.retain(|group, ends| {
        ends.counts(decided.situation.now) && !is_made_since(&started, group, ends.at)
    });
    memories
}

/// The worker pods in which Ray runs, which is the only proof that pods of their group come up; none if nothing
/// is `remembered` that they could prove wrong.
pub(super) fn started<'a>(remembered: bool, decided: &Decided<'a>) -> Vec<&'a Pod<'a>> {
    // Most clusters have no such group, and to find these pods all pods are gone through.
    if !remembered {
        return Vec::new();
    }
    let nodes = decided.state.nodes.iter();
    let running = nodes.filter(|node| node.stage() == Stage::Running && !node.head);
    let running: HashSet<&str> = running.filter_map(PlannedNode::pod).collect();
    (decided.situation.own_pods.iter())
        .filter(|pod| running.contains(pod.name))
        .collect()
}

/// True if one of these pods is of the group, and was made since then.
pub(super) fn is_made_since(pods: &[&Pod<'_>], group: &str, since: f64) -> bool {
    let is_new = |created: f64| created + ROUNDED_S >= since;
    let mut of_group = pods.iter().filter(|pod| pod.group == group);
    of_group.any(|pod| pod.created().is_some_and(is_new))
}
