//! Giving up pods that could not be of use to the demand that waits.
//!
//! While a group is in growth back-off, its new pods stay at their base size: the Kubernetes nodes
//! are full, and what comes free is cut into pieces of that size. A pod for which the scheduler has
//! no room yet would get no further. If no demand fits it at its base size, it is given up, so that
//! it does not take the next piece from pods that could grow with it.
//!
//! A back-off may begin with a pod that starts. Then the others were launched for their base size.
//! They stay, though those that get a Kubernetes node sooner may look as if they could grow in
//! their room.

use super::spare;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::unmet::CountedAtBase;
use crate::plan::packing::state::DecisionState;

/// Gives up the pods without a Kubernetes node that no demand needs, of groups in growth back-off.
pub(crate) fn give_up(state: &mut DecisionState) {
    let is_vain = |state: &DecisionState, node: &PlannedNode| {
        let at_base = state.group(node).and_then(|group| group.at_base);
        node.stage() == Stage::Allocated
            && node.unschedulable_s.is_some()
            && matches!(at_base, Some(CountedAtBase::GrowthBackoff { .. }))
    };
    spare::give_up(state, RemovalCause::Unschedulable, is_vain);
}
