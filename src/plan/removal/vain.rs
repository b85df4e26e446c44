//! Giving up pods that could not be of use to the demand that waits.
//!
//! While a group is in growth back-off, its new pods stay at their base size: the Kubernetes nodes are
//! full, and what comes free is cut into pieces of that size. A pod for which the scheduler has no
//! room yet would fare alike. If no demand fits it at its base size, it is given up, so that it
//! does not take the next piece from pods that could grow with it.

use crate::plan::list::NodeIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::unmet::CountedAtBase;
use crate::plan::packing::state::DecisionState;

/// Gives up the pods without a Kubernetes node that no demand needs, of groups in growth back-off.
pub(crate) fn give_up(state: &mut DecisionState) {
    let mut left = state.count(PlannedNode::stays);
    let is_vain = |node: &PlannedNode| {
        let at_base = state.group(node).and_then(|group| group.at_base);
        node.fate == Fate::Stay
            && !node.head
            && node.stage() == Stage::Allocated
            && node.unschedulable_s.is_some()
            && node.is_unneeded()
            && matches!(at_base, Some(CountedAtBase::GrowthBackoff { .. }))
            && !state.is_on_standby(node)
    };
    let numbers = state.order.iter().copied();
    let vain = numbers.filter(|number| state.nodes.get(*number).is_some_and(is_vain));
    let vain: Vec<NodeIndex> = vain.collect();
    for number in vain {
        let group = state.nodes.get(number).and_then(PlannedNode::group);
        let least = group.and_then(|group| Some(state.groups.get(group)?.config.min));
        let counted = group.and_then(|group| left.get_mut(group));
        if let Some(counted) = counted.filter(|counted| Some(**counted) > least)
            && let Some(node) = state.nodes.get_mut(number)
        {
            *counted -= 1;
            node.fate = Fate::Remove(RemovalCause::Unschedulable);
        }
    }
}
