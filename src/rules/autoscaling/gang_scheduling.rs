//! RF233: gang scheduling of a cluster whose size the autoscaler changes.

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::Kind;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF233
pub static RULE: Rule = Rule {
    id: RuleId(233),
    name: "gang-scheduling",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/gang-scheduling-enabled` together with autoscaling",
    what: "Reports an object with the label `ray.io/gang-scheduling-enabled`, whatever its value, \
           whose cluster has autoscaling on. Not for a RayCronJob, whose labels do not reach the \
           jobs it makes.",
    why: "The gang is the cluster as it is made, at its minimum: workers that the autoscaler adds \
          are scheduled one by one, or the gang is not made at all.",
    bad: r#"
metadata:
  labels: {ray.io/gang-scheduling-enabled: "true"}
spec:
  enableInTreeAutoscaling: true
"#,
    good: r#"
metadata:
  labels: {ray.io/gang-scheduling-enabled: "true"}
spec:
  enableInTreeAutoscaling: false
"#,
    without: "With YuniKorn a task group has minReplicas pods (KubeRay, \
              `yunikorn_task_groups.go`), as a PodGroup of Volcano has (`volcano_scheduler.go`); \
              with scheduler-plugins it has the replicas of the moment at which it was made \
              (`scheduler_plugins.go`); and workload-aware scheduling of Kubernetes, from KubeRay \
              1.7 on, skips clusters with autoscaling. A placement group of which not all pods get \
              a node holds the others back all the same; Rayfit gives its pods up and tries again \
              later, Ray's autoscaler keeps them.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Warn,
    faults: r#"s.auto && s.object.kind != 'RayCronJob' && 'ray.io/gang-scheduling-enabled' in s.object.metadata.?labels.orValue({})
  ? ['metadata.labels has ray.io/gang-scheduling-enabled while the autoscaler changes the size of the gang'] : []"#,
    fix: "Remove the label, or set enableInTreeAutoscaling: false.",
}]);

const LABEL: &str = "ray.io/gang-scheduling-enabled";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let object = subject.object;
    // KubeRay hands the labels of a RayCronJob on neither to its jobs nor to their clusters.
    if subject.autoscaled().is_none() || object.kind == Kind::RayCronJob {
        return;
    }
    if let Some(value) = object.label(LABEL) {
        findings.add(
            RULE.finding(
                FieldPath::of(&["metadata", "labels"]).key(LABEL),
                "is on a cluster whose size the autoscaler changes",
                "Remove the label: with autoscaling on, only Rayfit's strategy keeps the pods of a \
                 placement group together. Or set enableInTreeAutoscaling: false and replicas to \
                 the size that the job needs.",
            )
            .valued(shown_text(value)),
        );
    }
}
