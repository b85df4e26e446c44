//! The pods that KubeRay is asked to delete: those in which Ray no longer runs, or never did.

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::list::GroupIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::Deletion;
use crate::snapshot::pod::PodRole;

/// The pods to delete, by group: pending pods that are to be removed, and pods whose Ray node has
/// stopped; of a multi-host replica neither while Ray runs in another host of it.
pub(crate) fn deletions(decided: &Decided<'_>) -> HashMap<GroupIndex, Vec<Deletion>> {
    let config = &decided.config;
    let mut deletions: HashMap<GroupIndex, Vec<Deletion>> = HashMap::default();
    let mut delete = |group: GroupIndex, pod: &str, cause| {
        let config = config.groups.get(group);
        if config.is_some_and(|config| !config.to_delete.contains(pod)) {
            let pod = pod.to_owned();
            deletions
                .entry(group)
                .or_default()
                .push(Deletion { pod, cause });
        }
    };
    let busy = running_replicas(decided);
    for node in decided.state.in_order() {
        if let Fate::Remove(cause) = node.fate
            && node.is_deleted()
            && let (Some(group), Some(pod)) = (node.group(), node.pod())
            && node.replica().is_none_or(|of| !busy.contains(&(group, of)))
        {
            delete(group, pod, cause);
        }
    }
    let (stopped, never) = (&decided.leftovers.stopped, &decided.leftovers.never_joined);
    let stopped = stopped.iter().map(|pod| (pod, RemovalCause::Stopped));
    let never = never.iter().map(|pod| (pod, RemovalCause::NeverJoined));
    for (pod, cause) in stopped.chain(never) {
        let Some(group) = config.number(pod.group) else {
            continue;
        };
        let is_whole = pod.replica.is_none_or(|of| !busy.contains(&(group, of)));
        if pod.role == PodRole::Worker && is_whole {
            delete(group, pod.name, cause);
        }
    }
    deletions
}

/// The multi-host replicas of which Ray still runs in one host or more.
fn running_replicas<'a>(decided: &'a Decided<'_>) -> HashSet<(GroupIndex, &'a str)> {
    let state = &decided.state;
    if !state.strategy.is_rayfit() {
        return HashSet::default();
    }
    let is_slice = |group: &GroupIndex| {
        let group = state.groups.get(*group);
        group.is_some_and(|group| group.config.hosts > 1)
    };
    // KubeRay deletes a whole replica as soon as one of its pods is to be deleted, so deletions
    // wait until Ray has stopped in all of its hosts.
    let runs = |node: &&PlannedNode| matches!(node.stage(), Stage::Running | Stage::Stopping);
    let running = state.in_order().filter(runs);
    let running = running.filter_map(|node| Some((node.group()?, node.replica()?)));
    let draining = decided.leftovers.draining.iter();
    let draining =
        draining.filter_map(|pod| Some((decided.config.number(pod.group)?, pod.replica?)));
    running
        .chain(draining)
        .filter(|(group, _)| is_slice(group))
        .collect()
}
