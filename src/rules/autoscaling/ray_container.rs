//! RF235: a ray container that is not the first one.

use crate::policy::Mode;
use crate::ray::Container;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF235
pub static RULE: Rule = Rule {
    id: RuleId(235),
    name: "ray-container",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The ray container is not the first container of its pod template",
    page: RulePage(include_str!("ray_container.md")),
    why: "KubeRay starts Ray in the first container, whatever its image is, and takes the size of a \
          node from it.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered(
    "Names and images of every container of every group exceed what the API server lets an \
     expression cost.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.groups() {
        let Some(first) = group.ray_container().filter(|first| !may_be_ray(first)) else {
            continue;
        };
        let Some(ray) = group.containers().skip(1).find(is_ray) else {
            continue;
        };
        let name = first
            .name()
            .map_or_else(|| "the first one".to_owned(), shown_text);
        findings.add(RULE.finding(
            group.container_path(&ray),
            format!("is not the first container, so Ray starts in {name}"),
            "Move it to the front of containers.",
        ));
    }
}

fn may_be_ray(container: &Container<'_>) -> bool {
    let named = [container.name(), container.image()];
    named
        .into_iter()
        .flatten()
        .any(|text| text.to_ascii_lowercase().contains("ray"))
}

fn is_ray(container: &Container<'_>) -> bool {
    let image = container.image().unwrap_or_default();
    matches!(container.name(), Some("ray" | "ray-head" | "ray-worker"))
        || image.starts_with("rayproject/ray")
        || image.contains("/rayproject/ray")
}
