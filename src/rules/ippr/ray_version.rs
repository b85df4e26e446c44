//! RF113: a Ray that does not know in-place resize.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::ray::ReconcileMode;
use crate::ray::cluster::RaySource;
use crate::ray::since;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown_text;

/// RF113
pub static RULE: Rule = Rule {
    id: RuleId(113),
    name: "ippr-ray-version",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` with a Ray before 2.56.0",
    page: RulePage(include_str!("ray_version.md")),
    why: "Ray reads ray.io/ippr from 2.56.0 on; earlier versions ignore it.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Object,
        mode: Mode::Warn,
        faults: r#"!s.auto || s.mode != 'ray' || s.object.kind == 'RayCronJob' || !s.groups.exists(g, '"' + g.name + '"' in s.keys) ? []
: s.cluster.?rayVersion.orValue('') != ''
? (s.cluster.rayVersion.matches(r'^v?([01]\.[0-9]|2\.([0-9]|[1-4][0-9]|5[0-5])([^0-9]|$))') ? [s.path + '.rayVersion ' + s.cluster.rayVersion + ' does not support ray.io/ippr'] : [])
: s.groups.filter(g, g.head && g.containers.size() > 0 && g.containers[0].?image.orValue('').matches(r'(^|/)rayproject/ray(-[^:/@]*)?:v?([01]\.[0-9]|2\.([0-9]|[1-4][0-9]|5[0-5])([^0-9]|$))'))
  .map(g, g.path + ' image ' + g.containers[0].image + ' does not support ray.io/ippr')"#,
        fix: "Use Ray 2.56.0 or later, or remove the annotation.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // Rayfit resizes pods by itself, whatever Ray's autoscaler of that version can do.
    let by_ray = subject.reconcile_mode() == ReconcileMode::Ray;
    let Some(cluster) = subject.autoscaled().filter(|_| by_ray) else {
        return;
    };
    if subject.resized_groups().next().is_none() {
        return;
    }
    if let Some(source) = RaySource::of(cluster).filter(|source| source.version < since::IPPR) {
        findings.add(finding(source));
    }
}

fn finding(source: RaySource) -> Finding {
    let (version, first) = (source.version, since::IPPR);
    RULE.finding(
        source.path,
        format!("is Ray {version}, which does not support ray.io/ippr"),
        format!("Use Ray {first} or later, or remove the annotation."),
    )
    .valued(shown_text(&source.text))
}
