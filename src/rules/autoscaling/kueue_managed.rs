//! RF219: a cluster that both Kueue and the autoscaler size.

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::kueue::{ELASTIC, QUEUE};
use crate::ray::{Kind, RayObject};
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{shown, shown_text};

/// RF219
pub static RULE: Rule = Rule {
    id: RuleId(219),
    name: "kueue-managed",
    mode: OwnMode::Always(Mode::Warn),
    summary: "Kueue's queue label together with autoscaling, not marked as an elastic job",
    what: "Reports an object with the label `kueue.x-k8s.io/queue-name` whose cluster has \
           autoscaling on, unless the annotation `kueue.x-k8s.io/elastic-job` is `\"true\"`. Not \
           for a RayCronJob, whose labels do not reach the jobs it makes.",
    why: "Kueue reserves quota for a fixed size, so it refuses the object or suspends and \
          requeues the cluster when the autoscaler changes it.",
    bad: "
metadata:
  labels: {kueue.x-k8s.io/queue-name: research}
spec:
  enableInTreeAutoscaling: true
",
    good: "
metadata:
  labels: {kueue.x-k8s.io/queue-name: research}
  annotations: {kueue.x-k8s.io/elastic-job: \"true\"}
spec:
  enableInTreeAutoscaling: true
",
    without: "Kueue's webhook refuses autoscaling in a job it manages, unless its feature gate \
              ElasticJobsViaWorkloadSlices is on and the job carries the annotation (Kueue, \
              `raycluster_webhook.go`); a Kueue without that check stops the cluster and queues it \
              again at every change of its size.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Warn,
    faults: r#"s.auto && s.object.kind != 'RayCronJob' && s.object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].orValue('') != ''
  && s.annotations[?'kueue.x-k8s.io/elastic-job'].orValue('') != 'true'
  ? ['metadata.annotations lacks kueue.x-k8s.io/elastic-job while queue ' + s.object.metadata.labels['kueue.x-k8s.io/queue-name'] + ' manages a cluster with autoscaling on'] : []"#,
    fix: r#"Annotate the object with kueue.x-k8s.io/elastic-job: "true", or set enableInTreeAutoscaling: false."#,
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let object = subject.object;
    // KubeRay hands the labels of a RayCronJob on neither to its jobs nor to their clusters.
    if subject.autoscaled().is_none() || object.kind == Kind::RayCronJob {
        return;
    }
    let Some(queue) = object.label(QUEUE).filter(|queue| !queue.is_empty()) else {
        return;
    };
    if object.annotation(ELASTIC) == Some("true") {
        return;
    }
    findings.add(
        RULE.finding(
            place(object),
            format!(
                "{} while queue {} manages a cluster with autoscaling on",
                state(object),
                shown_text(queue)
            ),
            "Annotate the object with kueue.x-k8s.io/elastic-job: \"true\" (Kueue needs its \
             feature gate ElasticJobsViaWorkloadSlices); or set enableInTreeAutoscaling: false.",
        )
        .valued(format!("queue {queue}")),
    );
}

/// The annotation, or where it is to be added.
fn place(object: &RayObject<'_>) -> FieldPath {
    if object.has_annotations() {
        FieldPath::annotation(ELASTIC)
    } else {
        FieldPath::of(&["metadata", "annotations"])
    }
}

/// What is wrong with the annotation.
fn state(object: &RayObject<'_>) -> String {
    match object.annotation_value(ELASTIC) {
        Some(value) => format!("is {}", shown(value)),
        None => format!("lacks {ELASTIC}"),
    }
}
