//! RF111: `ray.io/ippr` has no effect, because autoscaling is off.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(111),
    name: "ippr-autoscaling-off",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` without `enableInTreeAutoscaling: true`",
    page: include_str!("autoscaling_off.md"),
    why: "The autoscaler performs in-place resizes; without it ray.io/ippr has no effect.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            faults: r#"s.has && !s.auto && s.object.kind != 'RayCronJob' && s.entries.size() > 0 ? [s.path + '.enableInTreeAutoscaling is not true, so nobody acts on the annotation'] : []"#,
            fix: "Write enableInTreeAutoscaling: true, or remove the annotation.",
        }],
        PLAIN,
    ),
    check,
};

const KEY: &str = "enableInTreeAutoscaling";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let lists = !subject.object.ippr.groups.is_empty();
    let Some(cluster) = subject.cluster().filter(|_| lists) else {
        return;
    };
    // RF116 reports the annotation of a RayCronJob, which reaches no cluster.
    if cluster.autoscaling() || subject.object.kind == Kind::RayCronJob {
        return;
    }
    // KubeRay itself does not read the annotation, and adds the autoscaler to the head pod only with this field
    // (KubeRay, `DefaultHeadPodTemplate`).
    let value = cluster.spec.get(KEY).map_or("absent".to_owned(), shown);
    findings.push(
        RULE.finding(
            cluster.path().key(KEY),
            format!("is {value}, so nobody acts on the ray.io/ippr annotation"),
            format!("Write {KEY}: true, or remove the annotation."),
        )
        .valued(value),
    );
}
