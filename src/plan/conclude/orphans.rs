//! Pods of groups that are no longer in the RayCluster.
//!
//! KubeRay lets them be, because it only looks at the pods of the groups that are there. But it
//! deletes every pod that the `workersToDelete` of a group names, whatever group that pod is of, if
//! the group has one host per replica and is not suspended. So these pods are deleted through the
//! list of such a group. (KubeRay 1.6, `raycluster_controller.go`, `reconcilePods`.)

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::nodes::group::GroupConfig;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::{Deletion, GroupPlan};
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::snapshot::pod::{Pod, PodRole};

/// Puts these pods into the plan of a group through which KubeRay deletes them. If there is no such
/// group, adds a problem for each pod.
pub(crate) fn place(decided: &Decided<'_>, groups: &mut [GroupPlan], problems: &mut Vec<Problem>) {
    let orphans = orphans(decided);
    if orphans.is_empty() {
        return;
    }
    let carrier = decided.config.groups.iter().find(|group| carries(group));
    let carrier =
        carrier.and_then(|carrier| groups.iter_mut().find(|group| group.name == carrier.name));
    let Some(carrier) = carrier else {
        problems.extend(orphans.into_iter().map(left));
        return;
    };
    carrier.orphans = orphans
        .into_iter()
        .map(|pod| Deletion {
            pod: pod.name.to_owned(),
            cause: RemovalCause::GroupGone,
        })
        .collect();
}

fn carries(group: &GroupConfig) -> bool {
    !group.is_head && group.hosts == 1 && !group.suspended
}

fn left(pod: &Pod<'_>) -> Problem {
    Problem {
        at: ProblemPlace::Pod(pod.name.to_owned()),
        reason: ProblemReason::RemovedGroup(pod.group.to_owned()),
        effect: ProblemEffect::LeftToUsers {
            pod: pod.name.to_owned(),
        },
    }
}

/// The workers of groups that are gone in which Ray does not run and will not run: Ray has stopped,
/// the pod has ended, or the pod never began to run.
fn orphans<'a>(decided: &Decided<'a>) -> Vec<&'a Pod<'a>> {
    if !decided.state.strategy.is_rayfit() {
        return Vec::new();
    }
    let config = &decided.config;
    let stopped: HashSet<&str> = (decided.leftovers.stopped.iter())
        .map(|pod| pod.name)
        .collect();
    let rests = |pod: &Pod<'_>| {
        let pending = pod.phase == Some("Pending");
        !decided.live.contains_key(pod.name) && (pod.ended || pending || stopped.contains(pod.name))
    };
    let lists = config.groups.iter().flat_map(|group| &group.to_delete);
    let listed: HashSet<&str> = lists.map(String::as_str).collect();
    let is_one = |pod: &&Pod<'_>| {
        pod.role == PodRole::Worker
            && !pod.deleting
            && config.has_lost(pod.group)
            && rests(pod)
            && !listed.contains(pod.name)
    };
    decided.own.iter().filter(is_one).collect()
}
