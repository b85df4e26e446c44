//! RF113: a Ray that does not know in-place resize.

use serde_json::Value;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{Cluster, RayVersion, ReconcileMode};
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown_text;

/// RF113
pub static RULE: Rule = Rule {
    id: RuleId(113),
    name: "ippr-ray-version",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` with a Ray before 2.56.0",
    what: "Where Ray's own autoscaler scales the cluster and `ray.io/ippr` lists a group, reports a \
           `rayVersion` below 2.56.0 or, where there is no `rayVersion`, such a tag of an official \
           image in the head's ray container.",
    why: "Ray reads ray.io/ippr from 2.56.0 on; earlier versions ignore it.",
    bad: r#"
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  rayVersion: 2.55.1
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
"#,
    good: r#"
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  rayVersion: 2.56.0
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
"#,
    without: "The autoscaler of earlier versions has no IPPR provider and only scales by whole \
              pods (Ray 2.56.0 added it). Where Rayfit scales the cluster, it performs the resizes \
              itself, so the rule only concerns Ray's own autoscaler.",
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

/// The first Ray that resizes in place.
const FIRST: RayVersion = RayVersion::new(2, 56, 0);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // Rayfit resizes pods by itself, whatever Ray's autoscaler of that version can do.
    let by_ray = subject.reconcile_mode() == ReconcileMode::Ray;
    let Some(cluster) = subject.autoscaled().filter(|_| by_ray) else {
        return;
    };
    if subject.resized_groups().next().is_none() {
        return;
    }
    if let Some((path, text, version)) = version_of(cluster).filter(|found| found.2 < FIRST) {
        findings.add(finding(path, &text, version));
    }
}

/// The path of the version, its text, and the parsed version; `rayVersion` takes precedence.
pub(super) fn version_of(cluster: &Cluster<'_>) -> Option<(FieldPath, String, RayVersion)> {
    if let Some(text) = written(cluster) {
        let version = text.parse().ok()?;
        return Some((cluster.path().key("rayVersion"), text, version));
    }
    let head = cluster.head.as_ref()?;
    let image = head.ray_container()?.image()?;
    let version = RayVersion::of_official_image(image)?;
    let path = head.ray_container_path().key("image");
    Some((path, image.to_owned(), version))
}

/// `rayVersion`, also where YAML made a number of it.
fn written(cluster: &Cluster<'_>) -> Option<String> {
    match cluster.spec.get("rayVersion")? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn finding(path: FieldPath, text: &str, version: RayVersion) -> Finding {
    RULE.finding(
        path,
        format!("is Ray {version}, which does not support ray.io/ippr"),
        format!("Use Ray {FIRST} or later, or remove the annotation."),
    )
    .valued(shown_text(text))
}
