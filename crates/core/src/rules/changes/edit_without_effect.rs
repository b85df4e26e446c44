//! RF307: bounds of a RayService or RayJob whose RayCluster does not get them.

use super::restarts_pods;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(307),
    name: "edit-without-effect",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`minReplicas` or `maxReplicas` change in a RayService or RayJob that has its RayCluster",
    page: include_str!("edit_without_effect.md"),
    why: "KubeRay does not pass the change on to the RayCluster that runs, so nothing happens.",
    cel: Cel::NotCovered(
        "It needs a comparison of the rest of the spec, in which equal quantities may be written \
     differently.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (Some(old), Some(new)) = (subject.old, subject.cluster()) else {
        return;
    };
    let Some(cluster) = &old.cluster else {
        return;
    };
    // KubeRay compares hashes of the spec that leave out counts of replicas (`isClusterSpecHashEqual`), so a
    // RayService gets these with another change only, and a RayJob never (`getOrCreateRayClusterInstance`).
    let is_heard = match subject.object.kind {
        Kind::RayService => !restarts_pods::differences(cluster, new).is_empty(),
        Kind::RayJob => false,
        Kind::RayCluster | Kind::RayCronJob => true,
    };
    // A suspended object has no RayCluster, and the next one gets everything.
    let is_suspended = old.spec().is_some_and(|spec| spec.is_true("suspend"));
    if is_heard || is_suspended {
        return;
    }
    for group in &new.workers {
        let stored = group.name.and_then(|name| cluster.group(name));
        let Some(stored) = stored.filter(|stored| !stored.is_head()) else {
            continue;
        };
        for key in ["minReplicas", "maxReplicas"] {
            let value = group.spec.get(key);
            let Some(value) = value.filter(|value| stored.spec.get(key) != Some(*value)) else {
                continue;
            };
            let name = subject.object.name().unwrap_or("NAME");
            let finding = RULE.finding(
                group.path().key(key),
                format!(
                    "{} does not reach the RayCluster that is there",
                    shown(value)
                ),
                format!(
                    "Change it in the RayCluster too, which kubectl get rayclusters -l \
                     ray.io/originated-from-cr-name={name} shows."
                ),
            );
            findings.push(finding.valued(shown(value)));
        }
    }
}
