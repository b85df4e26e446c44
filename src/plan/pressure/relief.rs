//! Growing a pod whose memory is nearly full.

use std::cmp::Reverse;

use crate::plan::growth::in_use::{InUse, fitting};
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::Size;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::plan::MemoryReason;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::history::FollowedMemory;

/// The memory that a pod is to get because what it has is nearly full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relief {
    node: NodeIndex,
    in_use: InUse,
    /// All that it is to have, in bytes.
    memory: i64,
}

/// Takes the memory that pods are to get off what their Kubernetes nodes have left,
/// before demand takes it. The fullest pods come first.
pub(crate) fn reserve(state: &mut DecisionState) -> Vec<Relief> {
    let nodes = state.order.iter().copied();
    let mut full: Vec<(NodeIndex, InUse)> = nodes
        .filter_map(|number| Some((number, pressed(state.nodes.get(number)?)?)))
        .collect();
    full.sort_by_key(|(number, in_use)| {
        let node = state.nodes.get(*number);
        let has = node.and_then(|node| node.resize.as_deref());
        let has = has.map_or(1, |resize| resize.current.memory.max(1));
        // Whole thousandths, because floats have no order of their own. A tenant may report any
        // number of bytes, and a thousand times as many are beyond 64 bits.
        Reverse(i128::from(in_use.soon) * 1000 / i128::from(has))
    });
    let mut reliefs = Vec::new();
    for (node, in_use) in full {
        if let Some(memory) = take(state, node, in_use) {
            reliefs.push(Relief {
                node,
                in_use,
                memory,
            });
        }
    }
    reliefs
}

/// The memory in use of a node that has work and is nearly full.
fn pressed(node: &PlannedNode) -> Option<InUse> {
    let resize = node.resize.as_deref().filter(|resize| resize.can_grow())?;
    let has_work = node.stage() == Stage::Running && !node.is_idle();
    let in_use = resize.in_use.filter(|_| has_work && node.stays())?;
    in_use.fills(resize.current.memory).then_some(in_use)
}

fn take(state: &mut DecisionState, number: NodeIndex, in_use: InUse) -> Option<i64> {
    let resize = state.nodes.get(number)?.resize.as_deref()?;
    let (now, limit) = (resize.current, resize.limit().memory);
    let room = resize.headroom(&state.headrooms);
    let wanted = Size {
        cpu: now.cpu,
        memory: in_use.right(resize.base.memory).min(limit),
    };
    let most = room.map_or(wanted, |room| room.bound(now, wanted)).memory;
    let memory = fitting(wanted.memory, most, (resize.base.memory, limit));
    if memory <= now.memory {
        return None;
    }
    let then = Size {
        cpu: now.cpu,
        memory,
    };
    let kube_node = resize.kube_node;
    if let Some(headroom) = kube_node.and_then(|at| state.headrooms.get_mut(at)) {
        headroom.give(now, then);
    }
    Some(memory)
}

/// Asks the pods to grow.
pub(crate) fn grant(state: &mut DecisionState, reliefs: &[Relief], now: f64) {
    for relief in reliefs {
        let node = state.nodes.get_mut(relief.node);
        let node = node.filter(|node| node.fate == Fate::Stay);
        let Some(resize) = node.and_then(|node| node.resize.as_deref_mut()) else {
            continue;
        };
        let for_demand = resize.progress == ResizeProgress::New;
        let more = relief.memory.saturating_sub(resize.current.memory);
        // Demand has asked for what it adds to the pod, and the work that runs uses memory that it
        // has not asked for, so the pod gets both.
        let memory = if for_demand {
            let limit = resize.limit().memory.max(resize.desired.memory);
            resize.desired.memory.saturating_add(more).min(limit)
        } else {
            relief.memory
        };
        if resize.ask(None, Some(memory)) && !for_demand {
            resize.memory_reason = Some(MemoryReason::NearlyFull {
                bytes: relief.in_use.bytes,
            });
            remember(resize, now);
        }
    }
}

/// Remembers the memory that the pod has before it grows, below which it does not come down later.
fn remember(resize: &mut Resize, now: f64) {
    let before = resize.followed;
    resize.followed = Some(FollowedMemory {
        // A pod that grows several times comes down to what it had before the first time.
        from: before.map_or(resize.current.memory, |before| before.from),
        since: now,
        most: 0,
        times: before.map_or(0, |before| {
            before.times.saturating_add(u32::from(before.gave_back))
        }),
        gave_back: false,
    });
}
