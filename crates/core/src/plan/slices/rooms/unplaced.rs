//! Pods that the scheduler cannot place, and the room that it does not take for them: where a Kubernetes
//! node seems to have room for a pod, and the pod goes on waiting, it cannot go there.
//!
//! Room on a Kubernetes node is known by pods of Ray clusters only. Others are on it too, and a
//! pod may need more than CPU and memory. So room counts as long as the scheduler may not have seen
//! it yet.

use crate::hash::HashMap;
use crate::plan::list::{GroupIndex, KubeNodeIndex, NodeIndex};
use crate::plan::nodes::group::suits_room_of;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;
use crate::ray::resource::Amounts;
use crate::snapshot::history::RoomMemory;
use crate::snapshot::pod::Pod;

/// Seconds for which the scheduler may leave room that a pod fits into: it tries a pod again ten
/// seconds after it was refused, at the latest, and a watch tells of that. (Kubernetes,
/// `KubeSchedulerConfiguration.podMaxBackoffSeconds`.)
const TAKEN_S: f64 = 20.0;

/// A pod that the scheduler cannot place: its group, and what it asks for.
pub(crate) type UnplacedPod = (GroupIndex, Amounts);

/// The pods that demand or a minimum needs and that the scheduler cannot place.
pub(crate) fn unscheduled(
    state: &DecisionState,
    pods: &HashMap<&str, &Pod<'_>>,
) -> Vec<UnplacedPod> {
    // The pod may lack nothing but CPU and memory, as far as the scheduler says what it lacks.
    // (Kubernetes, `framework/plugins/noderesources/fit.go`: `Insufficient cpu`.)
    let lacks_size = |pod: &&&Pod<'_>| {
        let condition = pod.condition("PodScheduled");
        let message = condition.and_then(|condition| condition.message.as_deref());
        let names = |what: &str| message.is_none_or(|message| message.contains(what));
        names("Insufficient cpu") || names("Insufficient memory")
    };
    let required = state.required();
    let is_unschedulable = |number: &NodeIndex| state.tables.unschedulable_s.contains_key(number);
    let waiting = state.entries();
    let waiting = waiting.filter(|(number, _)| required[*number] && is_unschedulable(number));
    let unplaced = |(_, node): (NodeIndex, &PlannedNode)| {
        let pod = pods.get(node.pod()?).filter(lacks_size)?;
        Some((node.group()?, pod.requests()))
    };
    waiting.filter_map(unplaced).collect()
}

/// True if a pod of one group can run where a pod of the other one runs, as far as is known.
pub(crate) fn suits(
    state: &DecisionState,
    group: GroupIndex,
    neighbour: Option<GroupIndex>,
) -> bool {
    let config = |group: GroupIndex| &state.groups[group].config;
    neighbour.is_some_and(|neighbour| suits_room_of(config(group), config(neighbour)))
}

/// True if the scheduler has had the time to put a pod of the group onto the Kubernetes node, and has not.
pub(crate) fn is_refused(
    state: &DecisionState,
    rooms: &RoomMemory,
    (group, at): (GroupIndex, KubeNodeIndex),
    now: f64,
) -> bool {
    let nodes = rooms.get(state.name(group));
    let since = nodes.and_then(|nodes| nodes.get(&state.headrooms[at].node));
    since.is_some_and(|since| now >= since + TAKEN_S)
}
