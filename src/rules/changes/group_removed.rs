//! RF302: a worker group goes while its pods run.

use super::live_change::{LiveChange, pods};
use crate::policy::Mode;
use crate::ray::ReconcileMode;
use crate::rule_id::RuleId;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF302
pub static RULE: Rule = Rule {
    id: RuleId(302),
    name: "group-removed",
    mode: OwnMode::ByCase(
        "Enforce where Ray's own autoscaler scales the cluster, Warn where Rayfit does or nobody",
    ),
    summary: "A worker group is removed while its pods run",
    what: "Reports worker groups that an update takes out of a running RayCluster while pods of \
           them run, and says how many. A renamed group is one that goes and one that comes. \
           Silent where the pods are not known.",
    why: "Ray's autoscaler fails on a node whose group it does not know, in every round, and never \
          scales the cluster again.",
    bad: "
# while 2 workers of group large run
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
",
    good: "
# until the workers of group large are gone
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
  - groupName: large
    minReplicas: 0
    maxReplicas: 0
",
    without: "The operator does not delete the pods of a group that is gone; Ray's loop raises \
              `KeyError` while one of them has a live raylet, so it never heals (Ray, \
              `autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py`).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("CEL sees the object and the stored one, not the pods that run.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(change) = LiveChange::of(subject) else {
        return;
    };
    for group in &change.old.workers {
        let Some(name) = group.name.filter(|name| change.new.group(name).is_none()) else {
            continue;
        };
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
                "First give the group minReplicas: 0 and maxReplicas: 0, and remove it when its \
                 pods are gone.",
            )
            .valued(name);
        findings.add(match subject.reconcile_mode() {
            ReconcileMode::Ray if change.new.autoscaling() => finding,
            ReconcileMode::Ray => finding
                .in_mode(Mode::Warn)
                .because("KubeRay leaves the pods of a group that is gone, and nobody stops them."),
            _ => finding
                .in_mode(Mode::Warn)
                .because("Rayfit drains the pods of a group that is gone, and then removes them."),
        });
    }
}
