//! RF302: a worker group is removed while its pods run.

use super::live_change::{LiveChange, pods};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(302),
    name: "group-removed",
    mode: OwnMode::ByCase("Enforce where Ray's own autoscaler scales the cluster, otherwise Warn"),
    summary: "A worker group is removed while its pods run",
    page: include_str!("group_removed.md"),
    why: "Ray's autoscaler fails on a node whose group it does not know, in every round, and never \
          scales the cluster again.",
    cel: NO_PODS,
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(change) = LiveChange::of(subject) else {
        return;
    };
    for group in &change.old.workers {
        let Some(name) = group.name.filter(|name| change.new.group(name).is_none()) else {
            continue;
        };
        // Ray's loop raises KeyError for as long as a pod of an unknown group has a live raylet
        // (`kuberay/cloud_provider.py`); without such a pod the group may go.
        let running = pods(subject).filter(|pod| pod.group == name).count();
        if running == 0 {
            continue;
        }
        let count = if running == 1 {
            "1 pod of it runs".to_owned()
        } else {
            format!("{running} pods of it run")
        };
        let finding = RULE
            .finding(
                change.new.path().key("workerGroupSpecs"),
                format!("{} is taken out while {count}", group.title()),
                "First give the group minReplicas: 0 and maxReplicas: 0, and remove it when it has \
                 no pods any more.",
            )
            .valued(name);
        findings.push(match subject.object.reconcile_mode() {
            ReconcileMode::Ray if change.new.autoscaling() => finding,
            ReconcileMode::Ray => finding.in_mode(Mode::Warn).because(
                "KubeRay does not delete the pods of a removed group, so they keep \
                          running.",
            ),
            _ => finding
                .in_mode(Mode::Warn)
                .because("Rayfit drains the pods of a removed group, and then has them deleted."),
        });
    }
}
