//! Claims of demand that was served before and still waits for room, which standby must not take: nodes that are only
//! kept ready give way to it at once.

use std::cmp::Reverse;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::growth::size::cores;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::pod::Pod;

/// The cores that demand lacks while it waits for room that standby nodes may take, beyond those of pods about to
/// go, which can be 0 until the scheduler has placed its pods; and whether a node that demand needs has no Kubernetes
/// node yet, so that nothing is launched that could take its place.
pub(super) fn claims(decided: &Decided<'_>) -> (Option<f64>, bool) {
    let (state, situation) = (&decided.state, decided.situation);
    let pods = situation.pods_by_name();
    let cpu = |pod: &Pod<'_>| pod.requests().cpu.map_or(0.0, cores);
    let required = state.required();
    let (mut cores_short, mut begins) = (0.0, false);
    for (_, node) in state.entries().filter(|(number, _)| required[*number]) {
        let pod = node.pod().and_then(|name| pods.get(name));
        if node.is_pending() {
            begins |= pod.is_none_or(|pod| pod.node.is_none());
        }
        if let Some(pod) = pod.filter(|pod| pod.is_unschedulable()) {
            cores_short += cpu(pod);
        }
    }
    // At the maximum of workers each node that is only kept ready has the place of one that
    // demand needs.
    if state.is_cut {
        return (Some(f64::INFINITY), begins);
    }
    if cores_short <= 0.0 {
        return (None, begins);
    }
    // Pods that go already make room, too, if that is soon: not a pod that is still there
    // when its grace period is over, as on a Kubernetes node that is gone, and not one
    // above a maximum, which may finish its work.
    let is_soon = |pod: &&Pod<'_>| pod.killed_at().is_some_and(|at| at > situation.now);
    let deleted = situation
        .own_pods
        .iter()
        .filter(|pod| pod.deleting && !pod.ended);
    let works = |pod: &Pod<'_>| situation.history().excess.contains_key(pod.name);
    let draining = decided.leftovers.draining.iter().copied();
    let draining = draining.filter(|pod| !pod.deleting && !works(pod));
    let removed = state.in_order().filter(|node| !node.stays());
    let removed = removed.filter_map(PlannedNode::pod);
    let removed = removed.filter_map(|name| pods.get(name).copied());
    let mut counted = HashSet::default();
    let freed = deleted.filter(is_soon).chain(draining).chain(removed);
    let freed = freed.filter(|pod| counted.insert(pod.name)).map(cpu);
    (Some((cores_short - freed.sum::<f64>()).max(0.0)), begins)
}

/// Removes idle nodes that are only kept ready, until so many cores are free: those first that have
/// been idle for longest.
///
/// Kubernetes does the same with pods of lower priority that only keep a place. As there, no more go
/// than are needed, as far as that can be told: which of them leaves the room where it is needed,
/// the scheduler knows alone. Pods on their way are left alone: Ray may begin to run in them, and take
/// work, before they are deleted.
pub(super) fn give_way(state: &mut DecisionState, cores: f64) {
    let is_only_ready = |(number, node): &(NodeIndex, &PlannedNode)| {
        node.fate == Fate::Stay && node.is_idle_worker() && state.is_on_standby(*number)
    };
    let only_ready = state.entries().filter(is_only_ready);
    let mut only_ready: Vec<NodeIndex> = only_ready.map(|(number, _)| number).collect();
    only_ready.sort_by_key(|number| Reverse(state.nodes[*number].idle_ms));
    let mut staying = state.count(PlannedNode::stays);
    let mut missing = cores;
    for number in only_ready {
        if missing <= 0.0 {
            return;
        }
        let node = &mut state.nodes[number];
        let Some(group) = node.group() else {
            continue;
        };
        if staying[group] <= state.groups[group].config.min {
            continue;
        }
        staying[group] -= 1;
        missing -= node.amounts.total(state.cpu).unwrap_or(0.0);
        node.fate = Fate::Remove(RemovalCause::GivesWay);
    }
}
