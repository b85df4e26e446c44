//! RF703: how a RayCluster is upgraded, said where KubeRay does not allow it.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(703),
    name: "cluster-upgrade",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`upgradeStrategy` of a cluster that KubeRay makes of another object, or of an unknown type",
    page: include_str!("cluster_upgrade.md"),
    why: "KubeRay considers the RayCluster invalid and creates no pod.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    let Some(strategy) = cluster.upgrade_strategy() else {
        return;
    };
    let path = cluster.path().key("upgradeStrategy").key("type");
    let origin = subject.object.label("ray.io/originated-from-crd");
    // KubeRay labels the RayClusters that it makes of RayJobs and RayServices, and refuses the field in them for ever
    // (`ValidateRayClusterUpgradeOptions`).
    let is_made = matches!(origin, Some("RayJob" | "RayService"));
    if !matches!(strategy, "Recreate" | "None") {
        let problem = format!("{} is neither Recreate nor None", shown_text(strategy));
        findings.push(RULE.finding(path, problem, "Write Recreate or None."));
    } else if subject.object.kind != Kind::RayCluster || is_made {
        let finding = RULE.finding(
            path,
            "is not allowed for a cluster that KubeRay makes of another object",
            "Remove it; a RayService has an upgradeStrategy of its own in its spec.",
        );
        findings.push(finding.mended_by_removal());
    }
}
