//! The pods that KubeRay is asked to delete: those in which Ray no longer runs, or never did.

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::list::GroupIndex;
use crate::plan::nodes::node::Fate;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::{Deletion, GroupPlan};
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::plan::slices::whole_replicas;
use crate::snapshot::pod::{Pod, PodRole};

/// The pods to delete, by group: pending pods that are to be removed, and pods whose Ray node has
/// stopped; of a multi-host replica neither while Ray runs in another host of it, if it goes as a whole (`whole`).
pub(crate) fn deletions(decided: &Decided<'_>, whole: bool) -> HashMap<GroupIndex, Vec<Deletion>> {
    let config = &decided.config;
    let mut deletions: HashMap<GroupIndex, Vec<Deletion>> = HashMap::default();
    let mut delete = |group: GroupIndex, pod: &str, cause| {
        if !config.groups[group].listed.contains(pod) {
            let pod = pod.to_owned();
            deletions
                .entry(group)
                .or_default()
                .push(Deletion { pod, cause });
        }
    };
    let busy = whole.then(|| whole_replicas::running(decided));
    let busy = busy.unwrap_or_default();
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
        if pod.role == PodRole::Worker
            && let Some(group) = config.number(pod.group)
            && pod.replica.is_none_or(|of| !busy.contains(&(group, of)))
        {
            delete(group, pod.name, cause);
        }
    }
    deletions
}

/// Puts the pods of groups that are no longer in the RayCluster into the plan of a group through which
/// KubeRay deletes them. If there is no such group, adds a problem for each pod.
///
/// KubeRay lets these pods be, because it only looks at the pods of the groups that are there. But it
/// deletes every pod that the `workersToDelete` of a group names, whatever group that pod is of, if
/// the group has one host per replica and is not suspended. (KubeRay 1.6, `raycluster_controller.go`,
/// `reconcilePods`.)
pub(crate) fn of_removed_groups(
    decided: &Decided<'_>,
    groups: &mut [GroupPlan],
    problems: &mut Vec<Problem>,
) {
    let config = &decided.config;
    let stopped = decided.leftovers.stopped.iter();
    let stopped: HashSet<&str> = stopped.map(|pod| pod.name).collect();
    let listed = config.groups.iter().flat_map(|group| &group.listed);
    let listed: HashSet<&str> = listed.map(String::as_str).collect();
    // Ray does not run in them and will not: it has stopped, the pod has ended, or it never began to run.
    let rests = |pod: &Pod<'_>| {
        let is_pending = pod.phase == Some("Pending");
        let is_over = pod.ended || is_pending || stopped.contains(pod.name);
        is_over && !decided.situation.live.contains_key(pod.name)
    };
    let orphans = decided.situation.own_pods.iter().filter(|pod| {
        pod.role == PodRole::Worker
            && !pod.deleting
            && config.has_lost(pod.group)
            && rests(pod)
            && !listed.contains(pod.name)
    });
    let mut carriers = config.groups.iter();
    let carrier = carriers.find(|group| !group.is_head() && group.hosts == 1 && !group.suspended);
    let carrier =
        carrier.and_then(|carrier| groups.iter_mut().find(|group| group.name == carrier.name));
    if let Some(carrier) = carrier {
        let delete = |pod: &Pod<'_>| Deletion {
            pod: pod.name.to_owned(),
            cause: RemovalCause::GroupGone,
        };
        carrier.orphans = orphans.map(delete).collect();
        return;
    }
    problems.extend(orphans.map(|pod| {
        Problem {
            at: ProblemPlace::Pod(pod.name.to_owned()),
            reason: ProblemReason::RemovedGroup(pod.group.to_owned()),
            effect: format!(
                "it is left as it is; delete it with `kubectl delete pod {}`",
                pod.name
            )
            .into(),
        }
    }));
}
