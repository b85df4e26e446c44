//! Giving up what placement groups leave behind that did not get all of their pods: pods that wait for
//! a Kubernetes node, and idle ones that hold room that others need to become whole.

use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;

/// For how long a node has been idle before it goes, in milliseconds: between two tasks of one burst
/// a node is idle for a moment only.
const IDLE_MS: i64 = 5_000;

/// Removes the nodes that nothing needs and that are pending or idle, but none that its group's
/// minimum needs, or that is kept ready.
pub(crate) fn give_up(state: &mut DecisionState) {
    let mut left = state.count(PlannedNode::stays);
    for number in state.order.clone() {
        let Some(node) = state.nodes.get(number) else {
            continue;
        };
        let is_pending = matches!(
            node.stage(),
            Stage::Queued | Stage::Requested | Stage::Allocated
        );
        let is_spare = is_pending || node.is_idle() && node.idle_ms >= IDLE_MS;
        if node.fate != Fate::Stay
            || node.head
            || !is_spare
            || !node.is_unneeded()
            || state.is_on_standby(node)
        {
            continue;
        }
        let Some((group, of)) = node.group().zip(state.group(node)) else {
            continue;
        };
        let (least, count) = (of.config.min, node.count);
        let Some(left) = left.get_mut(group) else {
            continue;
        };
        if left.saturating_sub(count) < least {
            continue;
        }
        *left -= count;
        if let Some(node) = state.nodes.get_mut(number) {
            node.fate = Fate::Remove(RemovalCause::Scattered);
        }
    }
}
