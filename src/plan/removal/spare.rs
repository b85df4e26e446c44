//! Removing nodes that nothing needs, as far as the minima of their groups allow.

use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;

/// Removes the nodes of which `is_spare` is true and that nothing needs, but none that its group's
/// minimum needs, or that is kept ready.
pub(super) fn give_up(
    state: &mut DecisionState,
    cause: RemovalCause,
    is_spare: impl Fn(&DecisionState, &PlannedNode) -> bool,
) {
    let mut left = state.count(PlannedNode::stays);
    for number in state.order.clone() {
        let Some(node) = state.nodes.get(number) else {
            continue;
        };
        if node.fate != Fate::Stay
            || node.head
            || !is_spare(state, node)
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
            node.fate = Fate::Remove(cause);
        }
    }
}
