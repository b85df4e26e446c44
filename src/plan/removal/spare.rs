//! Removing nodes that nothing needs, as far as the minima of their groups allow.

use std::collections::HashMap;

use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::{DecisionState, with_parts};

/// Removes the nodes of which `is_spare` is true and that nothing needs, but none that its group's
/// minimum needs, or that is kept ready.
pub(super) fn give_up(
    state: &mut DecisionState,
    cause: RemovalCause,
    is_spare: impl Fn(&DecisionState, &PlannedNode) -> bool,
) {
    let mut left = state.count(PlannedNode::stays);
    let mut parts: HashMap<NodeIndex, Vec<NodeIndex>> = HashMap::new();
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
        let count = node
            .count
            .min(left.count(group).saturating_sub(of.config.min));
        let is_part = count < node.count;
        if count == 0 {
            continue;
        }
        if let Some(left) = left.get_mut(group) {
            *left -= count;
        }
        // Launches without pods are one entry, of which the minimum may need a part only.
        let given_up = if is_part {
            state.split(number, count)
        } else {
            Some(number)
        };
        if let Some(part) = given_up.filter(|_| is_part) {
            parts.entry(number).or_default().push(part);
        }
        if let Some(node) = given_up.and_then(|number| state.nodes.get_mut(number)) {
            node.fate = Fate::Remove(cause);
        }
    }
    state.order = with_parts(std::mem::take(&mut state.order), &parts);
}
