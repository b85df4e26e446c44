//! Giving up what placement groups leave behind that did not get all of their pods: pods that wait for
//! a Kubernetes node, and idle ones that hold room that others need to become whole.

use super::spare;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;

/// For how long a node has been idle before it goes, in milliseconds: between two tasks of one burst
/// a node is idle for a moment only.
const IDLE_MS: i64 = 5_000;

/// Removes the nodes that nothing needs and that are pending or idle.
pub(crate) fn give_up(state: &mut DecisionState) {
    let is_spare = |_: &DecisionState, node: &PlannedNode| {
        let is_pending = matches!(
            node.stage(),
            Stage::Queued | Stage::Requested | Stage::Allocated
        );
        is_pending || node.is_idle() && node.idle_ms >= IDLE_MS
    };
    spare::give_up(state, RemovalCause::Scattered, is_spare);
}
