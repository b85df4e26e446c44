//! Whole replicas: the hosts of a multi-host replica are removed together or not at all.
//!
//! KubeRay deletes a whole replica as soon as one of its pods is to be deleted; Ray's autoscaler removes single hosts.

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::list::GroupIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;

/// Holds back hosts of multi-host replicas that are to be removed and must not be yet. A host
/// is removed only together with the other hosts of its replica, because KubeRay deletes the
/// whole replica.
pub(crate) fn hold_back(state: &mut DecisionState) {
    // A node that goes and was not asked to stop before.
    let goes_now = |node: &PlannedNode| {
        let stops = Fate::Remove(RemovalCause::StopRequested);
        node.pod().is_some() && node.fate != stops && matches!(node.fate, Fate::Remove(_))
    };
    let hosts = |node: &PlannedNode| state.group(node).map_or(1, |group| group.config.hosts);
    let mut staying: HashMap<(Option<GroupIndex>, &str), bool> = HashMap::default();
    let mut unnamed: HashMap<Option<GroupIndex>, u64> = HashMap::default();
    for node in state.in_order().filter(|node| hosts(node) > 1) {
        match node.replica() {
            Some(replica) => {
                *staying.entry((node.group(), replica)).or_default() |= node.stays();
            }
            None if goes_now(node) => *unnamed.entry(node.group()).or_default() += node.count,
            None => {}
        }
    }
    // Pods do not say which replica they belong to before KubeRay 1.6, or by choice. Were other
    // numbers of hosts removed, `replicas` could not follow, and KubeRay would make new pods in
    // their place.
    for (group, count) in &mut unnamed {
        let group = group.and_then(|group| state.groups.get(group));
        let hosts = group.map_or(1, |group| group.config.hosts);
        // Only as many hosts as whole replicas have are removed; the rest waits for a later
        // round.
        *count -= count.checked_rem(hosts).unwrap_or(0);
    }
    let is_left_alone = state.is_left_alone();
    let mut holds = Vec::new();
    for number in &state.order {
        let Some(node) = state.nodes.get(*number) else {
            continue;
        };
        // While a group is suspended, KubeRay leaves the whole cluster alone, and a pod in
        // which Ray does not run yet could take work until KubeRay deletes it.
        if is_left_alone && node.stage() == Stage::Allocated {
            holds.push(*number);
            continue;
        }
        if hosts(node) <= 1 {
            continue;
        }
        let is_held = match node.replica() {
            Some(replica) => staying.get(&(node.group(), replica)) == Some(&true),
            None if !goes_now(node) => false,
            None => match unnamed.get_mut(&node.group()).filter(|count| **count > 0) {
                Some(count) => {
                    *count -= 1;
                    false
                }
                None => true,
            },
        };
        if is_held {
            holds.push(*number);
        }
    }
    for number in holds {
        if let Some(node) = state.nodes.get_mut(number)
            && let Fate::Remove(cause) = node.fate
        {
            node.fate = Fate::Hold(cause);
        }
    }
}

/// The multi-host replicas of which Ray still runs in one host or more: deletions wait until Ray has stopped in all of
/// their hosts.
pub(crate) fn running<'a>(decided: &'a Decided<'_>) -> HashSet<(GroupIndex, &'a str)> {
    let state = &decided.state;
    let runs = |node: &&PlannedNode| matches!(node.stage(), Stage::Running | Stage::Stopping);
    let running = state.in_order().filter(runs);
    let running = running.filter_map(|node| Some((node.group()?, node.replica()?)));
    let draining = decided.leftovers.draining.iter();
    let draining =
        draining.filter_map(|pod| Some((decided.config.number(pod.group)?, pod.replica?)));
    let is_slice = |(group, _): &(GroupIndex, &str)| state.hosts(*group) > 1;
    running.chain(draining).filter(is_slice).collect()
}
