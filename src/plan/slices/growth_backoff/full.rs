//! Pods that start on Kubernetes nodes that are full, so that they cannot grow.
//!
//! In: the nodes as they are counted before packing, the headroom of their Kubernetes nodes, and what
//! the demand needs. Out: the groups whose new pods are not to be expected to grow.

use crate::hash::HashSet;
use crate::plan::demand::names::Name;
use crate::plan::growth::size::{bytes, cores};
use crate::plan::list::{ByGroup, KubeNodeIndex};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;

/// The least room for growth that counts, in cores: hardly a task asks for less.
const LEAST_CPU: f64 = 1.0;

/// The least room for growth that counts, in bytes.
const LEAST_MEMORY: i64 = 256 << 20;

/// By group, whether a pod of it starts on a Kubernetes node that is full, while all demand that is for
/// the group fits a pod at its base size, so that more pods serve it as well as larger ones.
pub(crate) fn groups_without_room(state: &DecisionState) -> ByGroup<bool> {
    let DecisionState {
        nodes,
        headrooms,
        shapes,
        groups,
        cpu,
        memory,
        ..
    } = state;
    let mut full = groups.map(|_| false);
    let starting = |node: &&PlannedNode| node.stage() == Stage::Allocated && node.resize.is_some();
    // Most rounds have no such pod, and all shapes would be gone through for nothing.
    if !nodes.iter().any(|node| starting(&node)) {
        return full;
    }
    let is_named =
        |name: Option<Name>| name.is_some_and(|name| shapes.iter().any(|shape| shape.names(name)));
    let (names_cpu, names_memory) = (is_named(*cpu), is_named(*memory));
    let resizes = nodes.iter().filter_map(|node| node.resize.as_deref());
    // A Kubernetes node on which pods of this cluster have grown, or are about to, had room for
    // that, so it says nothing about those to come.
    let grown = resizes.filter(|resize| resize.base.is_below(resize.desired));
    let grown: HashSet<KubeNodeIndex> = grown.filter_map(|resize| resize.kube_node).collect();
    for node in nodes.iter().filter(starting) {
        if let Some(resize) = node.resize.as_deref()
            && let Some(at) = resize.kube_node.filter(|at| !grown.contains(at))
            // Nor does one that is about to leave.
            && let Some(headroom) = headrooms.get(at).filter(|headroom| !headroom.is_closed)
            && let Some(full) = node.group().and_then(|group| full.get_mut(group))
        {
            // Only dimensions count that the resize limits allow and that the demand names.
            let cpu = resize.limits.cpu - resize.current.cpu;
            let memory = (resize.limits.memory).saturating_sub(resize.current.memory);
            *full |= names_cpu && cpu > 0.0 && cores(headroom.cpu) < cpu.min(LEAST_CPU)
                || names_memory && memory > 0 && bytes(headroom.memory) < memory.min(LEAST_MEMORY);
        }
    }
    for (full, group) in full
        .iter_mut()
        .zip(groups.iter())
        .filter(|(full, _)| **full)
    {
        let base = &group.base;
        // The requests fit the empty node one by one, or are for other nodes, because they name
        // something that it has nothing of. Labels are not compared.
        *full = shapes.iter().all(|shape| {
            let is_for_others = shape.positive().any(|(name, _)| base.total(name).is_none());
            let mut needs = shape.positive();
            is_for_others
                || needs.all(|(name, needed)| base.total(name).is_some_and(|has| needed <= has))
        });
    }
    full
}
