//! Pending nodes that are given up after demand went to another group: what costs nothing at once,
//! and what has a pod after a while.

use std::collections::HashMap;

use crate::plan::list::NodeIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::{DecisionState, with_parts};
use crate::snapshot::History;

/// After how many seconds pods are given up that nothing needs since demand went to another group.
const WITHDRAWN_AFTER_S: f64 = 60.0;

/// For how long pending nodes that no demand needs are kept, where nothing is set: for a while once
/// any group was blocked, because one of the groups that demand went to is not needed then.
pub(crate) fn pending_timeout(state: &DecisionState, history: &History) -> Option<f64> {
    let is_blocked = state.groups.iter().any(|group| group.block.is_some());
    (is_blocked || !history.blocked.is_empty()).then_some(WITHDRAWN_AFTER_S)
}

/// Gives up launches of blocked groups that have no pod and that no demand needs. KubeRay makes the
/// pods of its groups in order, and makes none of the later groups while one is refused.
pub(crate) fn launches(state: &mut DecisionState) {
    let mut left = state.count(PlannedNode::stays);
    let mut parts: HashMap<NodeIndex, Vec<NodeIndex>> = HashMap::new();
    for number in state.order.clone() {
        let is_given_up = |node: &&PlannedNode| {
            node.blocked
                && node.fate == Fate::Stay
                && matches!(node.stage(), Stage::Queued | Stage::Requested)
                && node.is_unneeded()
                && node.standby.needed_for().is_none()
        };
        let Some(node) = state.nodes.get(number).filter(is_given_up) else {
            continue;
        };
        let Some((group, of)) = node.group().zip(state.group(node)) else {
            continue;
        };
        let least = of.floor.map_or(0, |floor| floor.nodes).max(of.config.min);
        let count = node.count.min(left.count(group).saturating_sub(least));
        let is_part = count < node.count;
        if count == 0 {
            continue;
        }
        if let Some(left) = left.get_mut(group) {
            *left -= count;
        }
        let given_up = if is_part {
            state.split(number, count)
        } else {
            Some(number)
        };
        if let Some(part) = given_up.filter(|_| is_part) {
            parts.entry(number).or_default().push(part);
        }
        if let Some(node) = given_up.and_then(|number| state.nodes.get_mut(number)) {
            node.fate = Fate::Remove(RemovalCause::Idle);
        }
    }
    state.order = with_parts(std::mem::take(&mut state.order), &parts);
}
