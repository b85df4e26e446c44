//! RF116: `ray.io/ippr` on a RayCronJob.

use crate::ray::ippr::ANNOTATION;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(116),
    name: "ippr-cron-job",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` on a RayCronJob, from where it reaches no cluster",
    page: include_str!("cron_job.md"),
    why: "KubeRay does not pass annotations of a RayCronJob on to its RayJobs, so nothing is resized.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            faults: r#"s.object.kind == 'RayCronJob' && (s.entries.size() > 0 || s.ippr != '' && !s.ippr.matches(r'(?s)^\s*\{.*\}\s*$')) ? ['does not reach the clusters that this schedule makes'] : []"#,
            fix: "Remove it; create RayJobs with the annotation where pods must grow in place.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // KubeRay gives the RayJobs of a RayCronJob a time stamp as their only annotation, and its `jobTemplate` has no
    // metadata to write one in.
    if subject.object.kind == Kind::RayCronJob && !subject.object.ippr.is_idle() {
        findings.push(RULE.finding(
            FieldPath::annotation(ANNOTATION),
            "does not reach the clusters that this schedule makes",
            "Remove it. Where pods must grow in place, create RayJobs with the annotation \
             instead, for example from a Kubernetes CronJob.",
        ));
    }
}
