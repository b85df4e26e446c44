//! RF113: a Ray that does not know in-place resize.

use crate::ray::cluster::RaySource;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(113),
    name: "ippr-ray-version",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` with a Ray before 2.56.0",
    page: include_str!("ray_version.md"),
    why: "Ray reads ray.io/ippr from 2.56.0 on; earlier versions ignore it.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            faults: r#"!s.auto || s.mode != 'ray' || s.object.kind == 'RayCronJob' || !s.groups.exists(g, '"' + g.name + '"' in s.keys) ? []
: s.cluster.?rayVersion.orValue('') != ''
? (s.cluster.rayVersion.matches(r'^v?([01]\.[0-9]|2\.([0-9]|[1-4][0-9]|5[0-5])([^0-9]|$))') ? [s.path + '.rayVersion ' + s.cluster.rayVersion + ' does not support ray.io/ippr'] : [])
: s.groups.filter(g, g.head && g.containers.size() > 0 && g.containers[0].?image.orValue('').matches(r'(^|/)rayproject/ray(-[^:/@]*)?:v?([01]\.[0-9]|2\.([0-9]|[1-4][0-9]|5[0-5])([^0-9]|$))'))
  .map(g, g.path + ' image ' + g.containers[0].image + ' does not support ray.io/ippr')"#,
            fix: "Use Ray 2.56.0 or later, or remove the annotation.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // Rayfit resizes pods by itself, whatever Ray's autoscaler of that version can do.
    if subject.object.reconcile_mode() != ReconcileMode::Ray
        || subject.resized_groups().next().is_none()
    {
        return;
    }
    // Earlier autoscalers have no IPPR provider and scale by whole pods only.
    let source = subject.autoscaled().and_then(RaySource::of);
    if let Some(source) = source.filter(|source| source.version < since::IPPR) {
        let (version, first) = (source.version, since::IPPR);
        let finding = RULE.finding(
            source.path,
            format!("is Ray {version}, which does not support ray.io/ippr"),
            format!("Use Ray {first} or later, or remove the annotation."),
        );
        findings.push(finding.valued(shown_text(&source.text)));
    }
}
