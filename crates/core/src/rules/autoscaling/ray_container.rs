//! RF235: a ray container that is not the first one.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(235),
    name: "ray-container",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The ray container is not the first container of its pod template",
    page: include_str!("ray_container.md"),
    why: "KubeRay starts Ray in the first container, whatever its image is, and takes the size of a \
          node from it.",
    cel: Cel::NotCovered(
        "Names and images of every container of every group exceed what the API server lets an \
     expression cost.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let may_be_ray = |container: &Container<'_>| {
        let names = [container.name(), container.image()];
        let mut names = names.into_iter().flatten();
        names.any(|text| text.to_ascii_lowercase().contains("ray"))
    };
    let is_ray = |container: &Container<'_>| {
        let image = container.image().unwrap_or_default();
        matches!(container.name(), Some("ray" | "ray-head" | "ray-worker"))
            || image.starts_with("rayproject/ray")
            || image.contains("/rayproject/ray")
    };
    // KubeRay (`RayContainerIndex`) and Ray (`autoscaling_config.py`) both go by the position alone.
    for group in subject.groups() {
        let Some(first) = group.ray_container.filter(|first| !may_be_ray(first)) else {
            continue;
        };
        let Some(ray) = group.containers().skip(1).find(is_ray) else {
            continue;
        };
        let name = first.name();
        let name = name.map_or_else(|| "the first one".to_owned(), shown_text);
        findings.push(RULE.finding(
            group.container_path(&ray),
            format!("is not the first container, so Ray starts in {name}"),
            "Move it to the front of containers.",
        ));
    }
}
