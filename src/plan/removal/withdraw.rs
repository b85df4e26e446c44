//! Pending nodes that are given up after demand went to another group: what costs nothing at once,
//! and what has a pod after a while.

use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;
use crate::plan::removal::parts::PartialRemoval;
use crate::snapshot::History;

/// Seconds after which pods are given up that nothing needs since demand went to another group.
const WITHDRAWN_AFTER_S: f64 = 60.0;

/// The timeout of pending nodes that no demand needs, in seconds, if none is set: `None` unless a
/// group was blocked.
pub(crate) fn pending_timeout(state: &DecisionState, history: &History) -> Option<f64> {
    // Demand went to another group meanwhile, so one of the two is not needed.
    (state.has_blocked || !history.blocked.is_empty()).then_some(WITHDRAWN_AFTER_S)
}

/// Gives up launches of blocked groups that have no pod and that no demand needs.
pub(crate) fn launches(state: &mut DecisionState) {
    let mut removal = PartialRemoval::begin(state);
    for number in state.order.clone() {
        // KubeRay makes the pods of its groups in order, and makes none of the later groups while
        // one is refused.
        let is_given_up = |node: &&PlannedNode| {
            node.is_blocked()
                && node.fate == Fate::Stay
                && matches!(node.stage(), Stage::Queued | Stage::Requested)
                && node.is_unneeded()
                && node.standby.needed_for().is_none()
        };
        let Some(node) = state.nodes.get(number).filter(is_given_up) else {
            continue;
        };
        let Some(of) = state.group(node) else {
            continue;
        };
        let least = of.floor.map_or(0, |floor| floor.nodes).max(of.config.min);
        removal.remove(state, number, least, RemovalCause::Idle);
    }
    removal.end(state);
}
