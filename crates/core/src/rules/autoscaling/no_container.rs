//! RF229: a pod template without containers.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(229),
    name: "no-container",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's pod template has no containers",
    page: include_str!("no_container.md"),
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster; Ray's \
          autoscaler fails on it too.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        faults: r#"has(g.spec.template) && g.containers.size() == 0 ? ['.template.spec.containers has no container'] : []"#,
        fix: "Add the ray container, the first of the list.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.groups() {
        if let Some(path) = place(group) {
            findings.push(RULE.finding(
                path,
                "has no container",
                "Add the ray container, the first of the list: {name: ray, image: \
                 rayproject/ray:<version>, resources: ..}.",
            ));
        }
    }
}

/// The place in which the containers should be.
fn place(group: &Group<'_>) -> Option<FieldPath> {
    let template = group.spec.object("template")?;
    let spec = match template.get("spec") {
        None | Some(Json::Null) => return Some(group.pod_spec_path()),
        // The API server refuses a value of a wrong type.
        Some(spec) => spec.as_object()?,
    };
    // The schema requires the list, and no container in it. Ray takes the first of each group
    // (`_get_ray_resources_from_group_spec`).
    match spec.get("containers") {
        None | Some(Json::Null) => {}
        Some(containers) if containers.as_array()?.is_empty() => {}
        Some(_) => return None,
    }
    Some(group.pod_spec_path().key("containers"))
}
