//! The sizes at which nodes count that are to grow or shrink.

use crate::hash::HashMap;
use crate::plan::assemble::raise;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::list::{KubeNodeIndex, List};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::growth_backoff::reason::CountedAtBase;

/// Seconds without a Kubernetes node after which a pod counts at its base size. Until then, a node
/// autoscaler may bring a node on which it can grow.
const UNSCHEDULABLE_FOR_LONG_S: f64 = 60.0;

fn waits_for_long(node: &PlannedNode) -> bool {
    let seconds = node.unschedulable_s;
    seconds.is_some_and(|seconds| seconds >= UNSCHEDULABLE_FOR_LONG_S)
}

/// Has the groups count at their base size whose pods have been without a Kubernetes node for long. The planner does
/// not see what all pods on all nodes take. Where the scheduler has found no room for long, what comes free is hardly
/// more than the pod asks for.
pub(crate) fn hold_back(state: &mut DecisionState) {
    for node in state.nodes.iter().filter(|node| waits_for_long(node)) {
        let group = node.group().and_then(|group| state.groups.get_mut(group));
        if let Some(group) = group.filter(|group| group.config.resize_limits.is_some()) {
            group.at_base.get_or_insert(CountedAtBase::Unschedulable);
        }
    }
}

/// Counts pending nodes at their resize limits, as far as the Kubernetes node has headroom on which the pod is, those
/// of groups that count at their base size with what they were made with, and nodes that shrink as if they had shrunk
/// already.
pub(crate) fn count_nodes(state: &mut DecisionState) {
    let (Some(cpu), Some(memory)) = (state.cpu, state.memory) else {
        return;
    };
    let names = (state.cpu, state.memory);
    let DecisionState {
        nodes,
        groups,
        headrooms,
        ..
    } = state;
    // Pods on one Kubernetes node grow one after the other, so each leaves less to the next.
    let mut headroom_rest: HashMap<KubeNodeIndex, NodeHeadroom> = HashMap::default();
    for node in nodes.iter_mut() {
        let group = node.group().and_then(|group| groups.get(group));
        let resize = node.resize.as_deref();
        let has_node = resize.is_some_and(|resize| resize.kube_node.is_some());
        let finds_none = node.unschedulable_s.is_some();
        let stays_small = match group.and_then(|group| group.at_base) {
            Some(CountedAtBase::GrowthBackoff { .. }) => finds_none,
            Some(CountedAtBase::FullNode { .. }) => finds_none || !has_node,
            Some(CountedAtBase::Unschedulable) | None => false,
        };
        let is_running = node.stage() == Stage::Running;
        let desired = resize.map(|resize| resize.desired);
        if waits_for_long(node) || !is_running && stays_small {
            // It may have been made larger than its template.
            if let Some(made) = desired {
                raise(node, names, made);
            }
        } else if !is_running {
            if let Some(limits) = group.and_then(|group| group.config.resize_limits) {
                let most = reachable(resize, limits, headrooms, &mut headroom_rest);
                node.at_resize_limits = true;
                raise(node, names, most);
            }
        } else if let Some(desired) = desired
            && resize.is_some_and(Resize::is_in_progress)
        {
            // The raylet gives up CPU and memory before its pod does, so what is to go takes no
            // more work.
            let total = |name| node.total(name).unwrap_or(0.0);
            let (cpus, bytes) = (total(cpu), total(memory));
            node.set_total(cpu, desired.cpu.min(cpus));
            node.set_total(memory, counted(desired.memory).min(bytes));
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
    if let Some(kube_node) = resize.and_then(|resize| resize.kube_node)
        && let Some(headroom) = headrooms.get(kube_node)
    {
        let headroom = headroom_rest
            .entry(kube_node)
            .or_insert_with(|| headroom.clone());
        most = headroom.bound(current, most);
        headroom.give(current, most);
    }
    // Limits may be below what a pod has or starts with, since they can be written at any time.
    // It does not shrink for that.
    most.max(current)
}
