//! RF219: a cluster that both Kueue and the autoscaler size.

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::kueue::{ELASTIC, QUEUE};
use crate::ray::{Kind, RayObject};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{shown, shown_text};

/// RF219
pub static RULE: Rule = Rule {
    id: RuleId(219),
    name: "kueue-managed",
    mode: OwnMode::Always(Mode::Warn),
    summary: "Kueue's queue label together with autoscaling, not marked as an elastic job",
    page: RulePage(include_str!("kueue_managed.md")),
    why: "Kueue reserves quota for a fixed size, so it refuses the object or suspends and \
          requeues the cluster when the autoscaler changes it.",
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
