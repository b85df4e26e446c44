//! RF235: a ray container that is not the first one.

use crate::policy::Mode;
use crate::ray::Container;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF235
pub static RULE: Rule = Rule {
    id: RuleId(235),
    name: "ray-container",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The ray container is not the first container of its pod template",
    what: "Checks the pod templates of all groups, the head included, and reports a container that is \
           named `ray`, `ray-head` or `ray-worker`, or has an image of the Ray project, behind a first \
           container whose name and image say nothing of Ray.",
    why: "KubeRay starts Ray in the first container, whatever its image is, and takes the size of a \
          node from it.",
    bad: "
spec:
  workerGroupSpecs:
  - groupName: small
    template:
      spec:
        containers:
        - {name: log-shipper, image: example.com/shipper:1}
        - {name: ray-worker, image: rayproject/ray:2.60.0}
",
    good: "
spec:
  workerGroupSpecs:
  - groupName: small
    template:
      spec:
        containers:
        - {name: ray-worker, image: rayproject/ray:2.60.0}
        - {name: log-shipper, image: example.com/shipper:1}
",
    without: "Both go by the position alone (KubeRay, `RayContainerIndex`; Ray, \
              `autoscaling_config.py`), so `ray start` runs where there is no Ray, and the limits of \
              the other container are the size of the node.",
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
