//! Giving way: nodes that are only kept ready go at once where demand needs their room.
//!
//! Kubernetes does the same with pods of lower priority that only keep a place. As there, no more go
//! than are needed, as far as that can be told: which of them leaves the room where it is needed,
//! the scheduler knows alone. Pods on their way are left alone: Ray may begin to run in them, and take
//! work, before they are deleted.

use std::cmp::Reverse;

use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;

/// Removes idle nodes that are only kept ready, until so many cores are free: those first that have
/// been idle for longest.
pub(crate) fn give_way(state: &mut DecisionState, cores: f64) {
    let is_only_ready = |node: &PlannedNode| {
        node.fate == Fate::Stay && node.is_idle_worker() && state.is_on_standby(node)
    };
    let mut only_ready: Vec<NodeIndex> = state.order.clone();
    only_ready.retain(|number| state.nodes.get(*number).is_some_and(is_only_ready));
    only_ready.sort_by_key(|number| state.nodes.get(*number).map(|node| Reverse(node.idle_ms)));
    let mut staying = state.count(PlannedNode::stays);
    let mut missing = cores;
    for number in only_ready {
        let Some(node) = state.nodes.get(number).filter(|_| missing > 0.0) else {
            return;
        };
        let least = state.group(node).map_or(0, |group| group.config.min);
        let of_group = node.group().and_then(|group| staying.get_mut(group));
        let Some(counted) = of_group.filter(|counted| **counted > least) else {
            continue;
        };
        *counted -= 1;
        missing -= state.cpu.and_then(|cpu| node.total(cpu)).unwrap_or(0.0);
        if let Some(node) = state.nodes.get_mut(number) {
            node.fate = Fate::Remove(RemovalCause::GivesWay);
        }
    }
}
