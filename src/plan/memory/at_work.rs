//! The number of pods that each group had when it last had work for all of them.

use std::collections::BTreeMap;

use crate::plan::decided::Decided;
use crate::plan::list::ByGroup;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::History;

/// For each group that number of pods, in the order of the groups.
pub(crate) fn most(history: &History, state: &DecisionState) -> ByGroup<u64> {
    let (running, idle) = (state.count(runs), state.count(PlannedNode::is_idle_worker));
    let groups = state.groups.iter().zip(running.into_iter().zip(idle));
    groups
        .map(|(group, (running, idle))| {
            let before = history.at_work.get(&group.config.name).copied();
            // While none is idle, or none is there, what runs now is the number: older ones say
            // nothing more.
            match before {
                Some(before) if idle > 0 && running > 0 => before.max(running),
                _ => running,
            }
        })
        .collect()
}

/// The counts to remember after a decision, of groups whose pods can be resized.
pub(crate) fn after(decided: &Decided<'_>) -> BTreeMap<String, u64> {
    let groups = decided.state.groups.iter().zip(decided.at_work.iter());
    groups
        .filter(|(group, most)| **most > 0 && group.config.resize_limits.is_some())
        .map(|(group, most)| (group.config.name.clone(), *most))
        .collect()
}

fn runs(node: &PlannedNode) -> bool {
    node.stage() == Stage::Running && !node.head
}
