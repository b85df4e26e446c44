//! RF229: a pod template without containers.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{Group, object_at};
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF229
pub static RULE: Rule = Rule {
    id: RuleId(229),
    name: "no-container",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's pod template has no containers",
    what: "Checks `template` of every group, the head included, with and without autoscaling, and \
           reports one whose `spec` is absent or whose `containers` are absent or empty. The API \
           server itself refuses an absent `template`.",
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster; Ray's \
          autoscaler fails on it too.",
    bad: "
spec:
  workerGroupSpecs:
  - groupName: small
    template: {spec: {containers: []}}
",
    good: "
spec:
  workerGroupSpecs:
  - groupName: small
    template: {spec: {containers: [{name: ray-worker, image: 'rayproject/ray:2.60.0'}]}}
",
    without: "The schema requires a list of containers in a pod spec, but no container in the \
              list, and no spec in a template. KubeRay reports the spec as invalid in an Event \
              (KubeRay, `ValidateRayClusterSpec`); Ray takes the first container of each group and \
              raises IndexError or KeyError (Ray, `_get_ray_resources_from_group_spec`).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Group,
    mode: Mode::Enforce,
    faults: r#"has(g.spec.template) && g.containers.size() == 0 ? ['.template.spec.containers has no container'] : []"#,
    fix: "Add the ray container, the first of the list.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.groups() {
        if let Some(path) = place(group) {
            findings.add(RULE.finding(
                path,
                "has no container",
                "Add the ray container, the first of the list: {name: ray, image: \
                 rayproject/ray:<version>, resources: ..}.",
            ));
        }
    }
}

/// Where the containers should be.
fn place(group: &Group<'_>) -> Option<FieldPath> {
    let template = object_at(group.spec, "template")?;
    let spec = match template.get("spec") {
        None | Some(Value::Null) => return Some(group.pod_spec_path()),
        // The API server refuses a value of a wrong type.
        Some(spec) => spec.as_object()?,
    };
    match spec.get("containers") {
        None | Some(Value::Null) => {}
        Some(containers) if containers.as_array()?.is_empty() => {}
        Some(_) => return None,
    }
    Some(group.pod_spec_path().key("containers"))
}
