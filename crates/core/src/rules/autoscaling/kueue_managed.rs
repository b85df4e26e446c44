//! RF219: a cluster that both Kueue and the autoscaler size.

use crate::ray::kueue::{ELASTIC, QUEUE};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(219),
    name: "kueue-managed",
    mode: OwnMode::Always(Mode::Warn),
    summary: "Kueue's queue label together with autoscaling, not marked as an elastic job",
    page: include_str!("kueue_managed.md"),
    why: "Kueue reserves quota for a fixed size, so it refuses the object or suspends and \
          requeues the cluster when the autoscaler changes it.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r#"s.auto && s.object.kind != 'RayCronJob' && s.object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].orValue('') != ''
  && s.annotations[?'kueue.x-k8s.io/elastic-job'].orValue('') != 'true'
  ? ['metadata.annotations lacks kueue.x-k8s.io/elastic-job while queue ' + s.object.metadata.labels['kueue.x-k8s.io/queue-name'] + ' manages a cluster with autoscaling on'] : []"#,
        fix: r#"Annotate the object with kueue.x-k8s.io/elastic-job: "true", or set enableInTreeAutoscaling: false."#,
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let object = subject.object;
    // KubeRay hands the labels of a RayCronJob on neither to its jobs nor to their clusters.
    if subject.autoscaled().is_none() || object.kind == Kind::RayCronJob {
        return;
    }
    let Some(queue) = object.label(QUEUE).filter(|queue| !queue.is_empty()) else {
        return;
    };
    // Kueue's webhook refuses autoscaling in a job that it manages unless the job carries this
    // (`raycluster_webhook.go`).
    if object.annotation(ELASTIC) == Some("true") {
        return;
    }
    let state = match object.annotation_value(ELASTIC) {
        Some(value) => format!("is {}", shown(value)),
        None => format!("lacks {ELASTIC}"),
    };
    let finding = RULE.finding(
        subject.annotation_path(ELASTIC),
        format!(
            "{state} while queue {} manages a cluster with autoscaling on",
            shown_text(queue)
        ),
        "Annotate the object with kueue.x-k8s.io/elastic-job: \"true\" (Kueue needs its feature \
         gate ElasticJobsViaWorkloadSlices); or set enableInTreeAutoscaling: false.",
    );
    findings.push(finding.valued(format!("queue {queue}")));
}
