//! Removing some of the nodes that an entry stands for.

use crate::hash::HashMap;
use crate::plan::list::{ByGroup, GroupIndex, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::{DecisionState, with_parts};

/// A removal of several entries, with what it leaves of each group. Launches without pods are one entry for several
/// nodes, of which a minimum may need some.
pub(crate) struct PartialRemoval {
    counts: ByGroup<u64>,
    parts: HashMap<NodeIndex, Vec<NodeIndex>>,
}

impl PartialRemoval {
    pub(crate) fn begin(state: &DecisionState) -> Self {
        Self {
            counts: state.count(PlannedNode::stays),
            parts: HashMap::default(),
        }
    }

    /// The number of nodes of a group that stay.
    pub(crate) fn count(&self, group: GroupIndex) -> u64 {
        self.counts.count(group)
    }

    /// Removes as many nodes of an entry as its group has above `least`.
    pub(crate) fn remove(
        &mut self,
        state: &mut DecisionState,
        number: NodeIndex,
        least: u64,
        cause: RemovalCause,
    ) {
        let node = state.nodes.get(number);
        let group = node.and_then(PlannedNode::group);
        let all = state.size(number);
        let Some(counts) = group.and_then(|group| self.counts.get_mut(group)) else {
            return;
        };
        let count = all.min(counts.saturating_sub(least));
        if count == 0 {
            return;
        }
        *counts -= count;
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
    pub(crate) fn end(self, state: &mut DecisionState) {
        state.order = with_parts(std::mem::take(&mut state.order), &self.parts);
    }
}
