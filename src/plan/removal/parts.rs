//! Removing entries of which a part may go: launches without pods are one entry for several nodes, of
//! which a minimum may need some.

use crate::hash::HashMap;
use crate::plan::list::{ByGroup, GroupIndex, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::{DecisionState, with_parts};

/// A removal of several entries, with what it leaves of each group.
pub(super) struct PartialRemoval {
    left: ByGroup<u64>,
    parts: HashMap<NodeIndex, Vec<NodeIndex>>,
}

impl PartialRemoval {
    pub(super) fn begin(state: &DecisionState) -> Self {
        Self {
            left: state.count(PlannedNode::stays),
            parts: HashMap::default(),
        }
    }

    /// The number of nodes of a group that stay.
    pub(super) fn left(&self, group: GroupIndex) -> u64 {
        self.left.count(group)
    }

    /// Removes as many nodes of an entry as its group has above `least`.
    pub(super) fn remove(
        &mut self,
        state: &mut DecisionState,
        number: NodeIndex,
        least: u64,
        cause: RemovalCause,
    ) {
        let of = state.nodes.get(number);
        let of = of.and_then(|node| Some((node.count, node.group()?)));
        let Some((all, left)) = of.and_then(|(all, group)| Some((all, self.left.get_mut(group)?)))
        else {
            return;
        };
        let count = all.min(left.saturating_sub(least));
        if count == 0 {
            return;
        }
        *left -= count;
        let removed = if count == all {
            Some(number)
        } else {
            let part = state.split(number, count);
            self.parts.entry(number).or_default().extend(part);
            part
        };
        if let Some(node) = removed.and_then(|number| state.nodes.get_mut(number)) {
            node.fate = Fate::Remove(cause);
        }
    }

    /// Takes the parts that were split off into the order.
    pub(super) fn end(self, state: &mut DecisionState) {
        state.order = with_parts(std::mem::take(&mut state.order), &self.parts);
    }
}
