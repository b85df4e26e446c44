//! RF233: gang scheduling of a cluster whose size the autoscaler changes.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(233),
    name: "gang-scheduling",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/gang-scheduling-enabled` together with autoscaling",
    page: include_str!("gang_scheduling.md"),
    why: "The gang is the cluster as it is made, at its minimum: workers that the autoscaler adds \
          are scheduled one by one, or the gang is not made at all.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r#"s.auto && s.object.kind != 'RayCronJob' && 'ray.io/gang-scheduling-enabled' in s.object.metadata.?labels.orValue({})
  ? ['metadata.labels has ray.io/gang-scheduling-enabled while the autoscaler changes the size of the gang'] : []"#,
        fix: "Remove the label, or set enableInTreeAutoscaling: false.",
    }]),
    check,
};

const LABEL: &str = "ray.io/gang-scheduling-enabled";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let object = subject.object;
    // KubeRay hands the labels of a RayCronJob on neither to its jobs nor to their clusters.
    if subject.autoscaled().is_none() || object.kind == Kind::RayCronJob {
        return;
    }
    if let Some(value) = object.label(LABEL) {
        findings.push(
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
