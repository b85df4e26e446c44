//! Giving up what placement groups leave behind that did not get all of their pods: pods that wait for
//! a Kubernetes node, and idle ones that hold room that others need to become whole.

use super::spare;
use crate::hash::HashSet;
use crate::plan::demand::shape::ShapeId;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::fit::admits;
use crate::plan::packing::state::DecisionState;

/// For how long a node has been idle before it goes, in milliseconds: between two tasks of one burst
/// a node is idle for a moment only.
const IDLE_MS: i64 = 5_000;

/// Removes the nodes that nothing needs, that are pending or idle, and that could hold one of these
/// bundles of placement groups that have been given up. All others keep their idle time: they are none
/// of what these left behind.
pub(crate) fn give_up(state: &mut DecisionState, bundles: &HashSet<ShapeId>) {
    if bundles.is_empty() {
        return;
    }
    let is_spare = |state: &DecisionState, node: &PlannedNode| {
        let is_pending = matches!(
            node.stage(),
            Stage::Queued | Stage::Requested | Stage::Allocated
        );
        let is_left = is_pending || node.is_idle() && node.idle_ms >= IDLE_MS;
        is_left && node.is_unneeded() && could_hold(state, node, bundles)
    };
    spare::give_up(state, RemovalCause::Scattered, is_spare);
}

/// Whether an empty node of that kind could hold one of the bundles, at the size that it has or may
/// grow to.
fn could_hold(state: &DecisionState, node: &PlannedNode, bundles: &HashSet<ShapeId>) -> bool {
    // Whoever runs code in a Ray cluster may ask for any number of bundles, each of another shape.
    if !state.work.spend(bundles.len()) {
        return false;
    }
    let template = state.group(node).map(|group| &group.template);
    bundles.iter().any(|bundle| {
        let shape = state.shapes.get(*bundle);
        let has_enough = |(name, needed)| {
            let total = |node: &PlannedNode| node.total(name);
            let has = total(node).unwrap_or(0.0);
            let has = template.and_then(total).map_or(has, |most| most.max(has));
            state.names.is_implicit(name) || has >= needed
        };
        admits(shape, &node.labels) && shape.positive().all(has_enough)
    })
}
