//! RF203: a group whose CPU count Ray cannot derive.

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{Container, Fields, Group, node_resources};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF203
pub static RULE: Rule = Rule {
    id: RuleId(203),
    name: "cpu-unknown",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "No CPU count can be derived for a group",
    page: RulePage(include_str!("cpu_unknown.md")),
    why: "Ray's autoscaler must know how many CPUs a pod has. Otherwise it fails, and scales no \
          group of the cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Group,
    mode: Mode::Enforce,
    faults: r#"s.auto && g.containers.size() > 0 && !('CPU' in g.resources) && !('num-cpus' in g.params) && !('cpu' in g.limits) && !('cpu' in g.requests)
  ? ['.template.spec.containers[0].resources.limits has no cpu, and nothing else says how many CPUs there are'] : []"#,
    fix: "Add a CPU limit to the ray container.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.autoscaled_groups() {
        // What cannot be read is an error here, and other rules report it.
        if node_resources::cpu(group) != Ok(None) {
            continue;
        }
        // Ray compares the key exactly (`_get_num_cpus`), although KubeRay reads it in any case of
        // letters.
        if let Some((key, amount)) = miswritten(group) {
            report_miswritten(group, key, amount, findings);
        } else if let Some(container) = group.ray_container() {
            report_absent(subject, group, &container, findings);
        }
    }
}

/// `cpu` in the group's `resources`, not written in capitals: a custom resource for Ray.
fn miswritten<'a>(group: &Group<'a>) -> Option<(&'a String, String)> {
    let (key, amount) = group
        .resources()?
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case("cpu"))?;
    Some((key, crate::text::shown(amount)))
}

fn report_miswritten(group: &Group<'_>, key: &str, amount: String, findings: &mut Findings) {
    findings.add(
        RULE.finding(
            group.path().key("resources").key(key.to_owned()),
            format!(
                "\"{key}\" is not how Ray writes CPU, and nothing else says how many there are"
            ),
            format!("Write it in capitals: CPU: {amount}."),
        )
        .valued(amount),
    );
}

fn report_absent(
    subject: &Subject<'_>,
    group: &Group<'_>,
    container: &Container<'_>,
    findings: &mut Findings,
) {
    let limit = "Add a CPU limit (or request) to the ray container, for example \
                 resources.limits.cpu: 2";
    let fix = if may_take_num_cpus(subject, group) {
        format!("{limit}; or, on a head that takes no tasks, rayStartParams.num-cpus: \"0\".")
    } else {
        format!("{limit}.")
    };
    findings.add(RULE.finding(
        absent_place(group, container),
        "the ray container has no CPU limit or request, and neither num-cpus in rayStartParams \
         nor CPU in the group's resources says how many CPUs there are",
        fix,
    ));
}

/// A head for which `num-cpus` breaks no other rule (RF105, RF206).
fn may_take_num_cpus(subject: &Subject<'_>, group: &Group<'_>) -> bool {
    let listed = group
        .name
        .is_some_and(|name| subject.object.ippr.lists(name));
    group.is_head() && !listed && group.resources().is_none()
}

/// The limit's place, as far as it exists, and one step beyond.
fn absent_place(group: &Group<'_>, container: &Container<'_>) -> FieldPath {
    let place = group.container_path(container).key("resources");
    let resources = container.spec.get("resources");
    match (resources.and_then(|r| r.as_object()), container.limits()) {
        (_, Some(_)) => place.key("limits").key("cpu"),
        (Some(resources), None) if !Fields::is_empty(resources) => place.key("limits"),
        _ => place,
    }
}
