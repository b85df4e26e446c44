//! Whole replicas: the hosts of a multi-host replica are removed together or not at all.
//!
//! KubeRay deletes a whole replica as soon as one of its pods is to be deleted; Ray's autoscaler removes single hosts.

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, GroupIndex, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;

/// Holds back hosts of multi-host replicas that are to be removed and must not be yet. A host
/// is removed only together with the other hosts of its replica, because KubeRay deletes the
/// whole replica.
pub(crate) fn hold_back(state: &mut DecisionState) {
    let is_left_alone = state.is_left_alone();
    let is_slice = |node: &PlannedNode| node.group().is_some_and(|group| state.hosts(group) > 1);
    let mut staying: HashSet<(Option<GroupIndex>, &str)> = HashSet::default();
    for node in state.in_order().filter(|node| node.stays()) {
        staying.extend(node.replica().map(|replica| (node.group(), replica)));
    }
    let mut unnamed = unnamed_hosts(state);
    let mut is_held = |node: &PlannedNode| {
        // While a group is suspended, KubeRay leaves the whole cluster alone, and a pod in
        // which Ray does not run yet could take work until KubeRay deletes it.
        if is_left_alone && node.stage() == Stage::Allocated {
            return true;
        }
        match (is_slice(node), node.replica(), node.group()) {
            (true, Some(replica), group) => staying.contains(&(group, replica)),
            (true, None, Some(group)) if goes_now(node) => {
                let goes = unnamed[group] > 0;
                unnamed[group] = unnamed[group].saturating_sub(1);
                !goes
            }
            _ => false,
        }
    };
    let held = state.entries().filter(|(_, node)| is_held(node));
    let held: Vec<NodeIndex> = held.map(|(number, _)| number).collect();
    for number in held {
        let node = &mut state.nodes[number];
        if let Fate::Remove(cause) = node.fate {
            node.fate = Fate::Hold(cause);
        }
    }
}

/// True for a node that goes and was not asked to stop before.
fn goes_now(node: &PlannedNode) -> bool {
    let stops = Fate::Remove(RemovalCause::StopRequested);
    node.pod().is_some() && node.fate != stops && matches!(node.fate, Fate::Remove(_))
}

/// By group, the number of hosts that may be removed without their replicas being known.
///
/// Pods do not say which replica they belong to before KubeRay 1.6, or by choice. Were other
/// numbers of hosts removed, `replicas` could not follow, and KubeRay would make new pods in
/// their place.
fn unnamed_hosts(state: &DecisionState) -> ByGroup<u64> {
    let mut counts = state.count(|node| node.replica().is_none() && goes_now(node));
    // Only as many hosts as whole replicas have are removed; the rest waits for a later
    // round.
    for (count, (group, _)) in counts.iter_mut().zip(state.groups.enumerate()) {
        *count -= *count % state.hosts(group);
    }
    counts
}

/// The multi-host replicas of which Ray still runs in one host or more: deletions wait until Ray has stopped in all of
/// their hosts.
pub(crate) fn running<'a>(decided: &'a Decided<'_>) -> HashSet<(GroupIndex, &'a str)> {
    let state = &decided.state;
    let runs = |node: &&PlannedNode| !node.is_pending();
    let running = state.in_order().filter(runs);
    let running = running.filter_map(|node| Some((node.group()?, node.replica()?)));
    let draining = decided.leftovers.draining.iter();
    let draining =
        draining.filter_map(|pod| Some((decided.config.number(pod.group)?, pod.replica?)));
    let is_slice = |(group, _): &(GroupIndex, &str)| state.hosts(*group) > 1;
    running.chain(draining).filter(is_slice).collect()
}
