//! Removing nodes that nothing needs, as far as the minima of their groups allow.

use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;
use crate::plan::removal::parts::PartialRemoval;

/// Removes the nodes of which `is_spare` is true and that nothing needs, but none that its group's
/// minimum needs, or that is kept ready.
pub(super) fn give_up(
    state: &mut DecisionState,
    cause: RemovalCause,
    is_spare: impl Fn(&DecisionState, &PlannedNode) -> bool,
) {
    let mut removal = PartialRemoval::begin(state);
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
        let Some(of) = state.group(node) else {
            continue;
        };
        let least = of.config.min;
        removal.remove(state, number, least, cause);
    }
    removal.end(state);
}
