//! RF203: a group whose CPU count Ray cannot derive.

use crate::ray::node_resources;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(203),
    name: "cpu-unknown",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "No CPU count can be derived for a group",
    page: include_str!("cpu_unknown.md"),
    why: "Ray's autoscaler must know how many CPUs a pod has. Otherwise it fails, and scales no \
          group of the cluster.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        faults: r#"s.auto && g.containers.size() > 0 && !('CPU' in g.resources) && !('num-cpus' in g.params) && !('cpu' in g.limits) && !('cpu' in g.requests)
  ? ['.template.spec.containers[0].resources.limits has no cpu, and nothing else says how many CPUs there are'] : []"#,
        fix: "Add a CPU limit to the ray container.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.autoscaled_groups() {
        // Unreadable values are errors here, and other rules report them.
        if node_resources::cpu(group) != Ok(None) {
            continue;
        }
        // Ray compares the key exactly (`_get_num_cpus`), although KubeRay reads it in any case of
        // letters: a key not written in capitals is a custom resource for Ray.
        let mut resources = group.resources.unwrap_or_default().iter();
        if let Some((key, amount)) = resources.find(|(key, _)| key.eq_ignore_ascii_case("cpu")) {
            let amount = shown(amount);
            let finding = RULE.finding(
                group.path().key("resources").key(key.to_owned()),
                format!(
                    "\"{key}\" is not how Ray writes CPU, and nothing else says how many there are"
                ),
                format!("Write it in capitals: CPU: {amount}."),
            );
            findings.push(finding.valued(amount));
            continue;
        }
        // Ray raises ValueError while it reads the RayCluster, so nothing of the whole cluster scales
        // (`_get_num_cpus`).
        let Some(container) = group.ray_container else {
            continue;
        };
        // The limit's place, as far as it exists, and one step beyond.
        let place = group.ray_container_path().key("resources");
        let resources = container.spec.object("resources");
        let place = if container.limits.is_some() {
            place.key("limits").key("cpu")
        } else if resources.is_none_or(Fields::is_empty) {
            place
        } else {
            place.key("limits")
        };
        let limit = "Add a CPU limit (or request) to the ray container, for example \
                     resources.limits.cpu: 2";
        // In other groups `num-cpus` breaks another rule (RF105, RF206).
        let may_take_num_cpus =
            group.is_head() && subject.resize_limits(group).is_none() && group.resources.is_none();
        let fix = if may_take_num_cpus {
            format!("{limit}; or, on a head that takes no tasks, rayStartParams.num-cpus: \"0\".")
        } else {
            format!("{limit}.")
        };
        findings.push(RULE.finding(
            place,
            "the ray container has no CPU limit or request, and neither num-cpus in rayStartParams \
             nor CPU in the group's resources says how many CPUs there are",
            fix,
        ));
    }
}
