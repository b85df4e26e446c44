//! The sizes at which nodes count that are to grow or shrink.

use crate::hash::HashMap;
use crate::plan::assemble::raise;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::list::{KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::nodes::tables::SliceTables;
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::slices::growth_backoff::reason::CountedAtBase;

/// Seconds without a Kubernetes node after which a pod counts at its base size. Until then, a node
/// autoscaler may bring a node on which it can grow.
const UNSCHEDULABLE_FOR_LONG_S: f64 = 60.0;

fn waits_for_long(tables: &SliceTables, number: NodeIndex) -> bool {
    let seconds = tables.unschedulable_s.get(&number);
    seconds.is_some_and(|seconds| *seconds >= UNSCHEDULABLE_FOR_LONG_S)
}

/// True for a pending or new node that counts as large as it can grow.
pub(super) fn is_at_limits(
    group: &PlannedGroup,
    tables: &SliceTables,
    (number, node): (NodeIndex, &PlannedNode),
) -> bool {
    let finds_none = tables.unschedulable_s.contains_key(&number);
    let kube_node = node.resize.as_deref().and_then(|resize| resize.kube_node);
    let is_at_base = match group.at_base {
        Some(_) if node.stage() == Stage::New => true,
        Some(CountedAtBase::GrowthBackoff { .. }) => finds_none,
        Some(CountedAtBase::FullNode { .. }) => finds_none || kube_node.is_none(),
        Some(CountedAtBase::Unschedulable) | None => waits_for_long(tables, number),
    };
    !is_at_base && group.config.resize_limits.is_some() && node.stage() != Stage::Running
}

/// Has the groups count at their base size whose pods have been without a Kubernetes node for long. The planner does
/// not see what all pods on all nodes take. Where the scheduler has found no room for long, what comes free is hardly
/// more than the pod asks for.
pub(crate) fn hold_back(state: &mut DecisionState) {
    let waiting = state.nodes.enumerate();
    for (_, node) in waiting.filter(|(number, _)| waits_for_long(&state.tables, *number)) {
        let group = node.group().map(|group| &mut state.groups[group]);
        if let Some(group) = group.filter(|group| group.config.resize_limits.is_some()) {
            group.at_base.get_or_insert(CountedAtBase::Unschedulable);
        }
    }
}

/// Counts pending nodes at their resize limits, as far as the Kubernetes node has headroom on which the pod is, those
/// of groups that count at their base size with what they were made with, and nodes that shrink as if they had shrunk
/// already.
pub(crate) fn count_nodes(state: &mut DecisionState) {
    let names = (state.cpu, state.memory);
    let DecisionState {
        nodes,
        groups,
        headrooms,
        tables,
        ..
    } = state;
    // Pods on one Kubernetes node grow one after the other, so each leaves less to the next.
    let mut headroom_rest: HashMap<KubeNodeIndex, NodeHeadroom> = HashMap::default();
    for number in nodes.positions() {
        let node = &mut nodes[number];
        let group = node.group().map(|group| &groups[group]);
        let group = group.filter(|group| is_at_limits(group, tables, (number, &*node)));
        let resize = node.resize.as_deref();
        let desired = resize.map(|resize| resize.desired);
        if let Some(limits) = group.and_then(|group| group.config.resize_limits) {
            let most = reachable(resize, limits, headrooms, &mut headroom_rest);
            raise(node, names, most);
        } else if waits_for_long(tables, number) || node.stage() != Stage::Running {
            // It may have been made larger than its template.
            if let Some(made) = desired {
                raise(node, names, made);
            }
        } else if let Some(desired) = desired
            && resize.is_some_and(Resize::is_in_progress)
        {
            // The raylet gives up CPU and memory before its pod does, so what is to go takes no
            // more work.
            let total = |name| node.amounts.total(name).unwrap_or(0.0);
            let (cpus, bytes) = (total(names.0), total(names.1));
            node.set_total(names.0, desired.cpu.min(cpus));
            node.set_total(names.1, counted(desired.memory).min(bytes));
        }
    }
}

/// The size that a pending pod reaches by its resize limits and the headroom of its Kubernetes node, which is taken
/// from what is left of it.
fn reachable(
    resize: Option<&Resize>,
    limits: Size,
    headrooms: &List<KubeNodeIndex, NodeHeadroom>,
    headroom_rest: &mut HashMap<KubeNodeIndex, NodeHeadroom>,
) -> Size {
    let current = resize.map_or(Size::default(), |resize| resize.current);
    let mut most = limits;
    if let Some(kube_node) = resize.and_then(|resize| resize.kube_node) {
        let headroom = headroom_rest.entry(kube_node);
        let headroom = headroom.or_insert_with(|| headrooms[kube_node].clone());
        most = headroom.bound(current, most);
        headroom.give(current, most);
    }
    // Limits may be below what a pod has or starts with, since they can be written at any time.
    // It does not shrink for that.
    most.max(current)
}
