//! Giving up nodes that nothing needs, as far as the minima of their groups allow: launches and pods that do not
//! come, or that a placement group left behind that did not become whole.

use crate::hash::HashSet;
use crate::plan::demand::shape::ShapeId;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::servable::could_hold;
use crate::plan::packing::state::DecisionState;
use crate::plan::removal::enforce::PartialRemoval;
use crate::plan::slices::growth_backoff::reason::CountedAtBase;

/// Seconds after which pods are given up that nothing needs since demand went to another group.
pub(crate) const WITHDRAWN_AFTER_S: f64 = 60.0;

/// Milliseconds for which a node has been idle before it goes for others' placement groups: between two tasks of one
/// burst a node is idle for a moment only.
const IDLE_MS: i64 = 5_000;

/// Gives up launches of blocked groups that have no pod and that no demand needs, because it went to another group:
/// they cost nothing.
pub(crate) fn launches(state: &mut DecisionState) {
    let mut removal = PartialRemoval::begin(state);
    for number in state.order.clone() {
        let (node, tables) = (&state.nodes[number], &state.tables);
        // KubeRay makes the pods of its groups in order, and makes none of the later groups while
        // one is refused.
        let is_given_up = tables.starts.contains_key(&number)
            && node.fate == Fate::Stay
            && matches!(node.stage(), Stage::Queued | Stage::Requested)
            && node.is_unneeded()
            && tables.needed_for(number).is_none();
        if let Some(group) = node.group().filter(|_| is_given_up) {
            let least = tables.floor(group).max(state.groups[group].config.min);
            removal.remove(state, number, least, RemovalCause::Idle);
        }
    }
    removal.end(state);
}

/// Gives up what placement groups leave behind that did not get all of their pods: nodes that are pending or idle, and
/// that could hold one of these bundles of placement groups that have been given up. Others need their room to become
/// whole. All other nodes keep their idle time: they are none of what these left behind.
pub(crate) fn scattered(state: &mut DecisionState, bundles: &HashSet<ShapeId>) {
    if bundles.is_empty() {
        return;
    }
    let is_spare = |state: &DecisionState, _, node: &PlannedNode| {
        let is_left = node.is_pending() || node.is_idle() && node.idle_ms >= IDLE_MS;
        is_left && node.is_unneeded() && could_hold_one(state, node, bundles)
    };
    give_up(state, RemovalCause::Scattered, is_spare);
}

/// True if an empty node of that kind could hold one of the bundles, at the size that it has or may
/// grow to.
fn could_hold_one(state: &DecisionState, node: &PlannedNode, bundles: &HashSet<ShapeId>) -> bool {
    // Whoever runs code in a Ray cluster may ask for any number of bundles, each of another shape.
    if !state.work.spend(bundles.len()) {
        return false;
    }
    let template = state.group(node).map(|group| &group.template);
    let total = |node: &PlannedNode, name| node.amounts.total(name).unwrap_or(0.0);
    let has = |name| {
        template
            .map_or(0.0, |most| total(most, name))
            .max(total(node, name))
    };
    let mut shapes = bundles.iter().map(|bundle| state.shapes.get(*bundle));
    shapes.any(|shape| could_hold(state, node, shape, has))
}

/// Gives up the pods without a Kubernetes node that no demand needs, of groups in growth back-off: they could not be of
/// use to the demand that waits.
///
/// While a group is in growth back-off, its new pods stay at their base size: the Kubernetes nodes
/// are full, and what comes free is cut into pieces of that size. A pod for which the scheduler has
/// no room yet would get no further. If no demand fits it at its base size, it is given up, so that
/// it does not take the next piece from pods that could grow with it.
///
/// A back-off may begin with a pod that starts. Then the others were launched for their base size.
/// They stay, though those that get a Kubernetes node sooner may look as if they could grow in
/// their room.
pub(crate) fn vain(state: &mut DecisionState) {
    let is_vain = |state: &DecisionState, number: NodeIndex, node: &PlannedNode| {
        let at_base = state.group(node).and_then(|group| group.at_base);
        node.stage() == Stage::Allocated
            && state.tables.unschedulable_s.contains_key(&number)
            && matches!(at_base, Some(CountedAtBase::GrowthBackoff { .. }))
    };
    give_up(state, RemovalCause::Unschedulable, is_vain);
}

/// Removes the nodes of which `is_spare` is true and that nothing needs, but none that its group's
/// minimum needs, or that is kept ready.
fn give_up(
    state: &mut DecisionState,
    cause: RemovalCause,
    is_spare: impl Fn(&DecisionState, NodeIndex, &PlannedNode) -> bool,
) {
    let mut removal = PartialRemoval::begin(state);
    for number in state.order.clone() {
        let node = &state.nodes[number];
        let is_given_up = node.fate == Fate::Stay
            && !node.head
            && is_spare(state, number, node)
            && node.is_unneeded()
            && !state.is_on_standby(number);
        if let Some(group) = node.group().filter(|_| is_given_up) {
            let least = state.groups[group].config.min;
            removal.remove(state, number, least, cause);
        }
    }
    removal.end(state);
}
