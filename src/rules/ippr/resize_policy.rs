//! RF108: a `resizePolicy` that would restart Ray, or that no pod can have.

use serde_json::Value;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{AutoscalerVersion, Fields, Group, Resource, list_at, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown;

/// RF108
pub static RULE: Rule = Rule {
    id: RuleId(108),
    name: "resize-policy",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "a `resizePolicy` that would restart Ray, or that Kubernetes refuses",
    page: RulePage(include_str!("resize_policy.md")),
    why: "A resize would restart the container and lose the work in it, so Ray refuses the whole \
          annotation and stops autoscaling the cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[
        Check {
            each: Each::Listed,
            mode: Mode::Enforce,
            faults: r#"g.containers.size() == 0 ? [] : g.containers[0].?resizePolicy.orValue([])
  .filter(p, p.resourceName in ['cpu', 'memory'] && p.?restartPolicy.orValue('NotRequired') != 'NotRequired')
  .map(p, '.template.spec.containers[0].resizePolicy for ' + p.resourceName + ' is ' + p.restartPolicy)"#,
            fix: "Write NotRequired.",
        },
        Check {
            each: Each::Group,
            mode: Mode::Enforce,
            faults: r#"(s.auto && s.version == 'v2') || g.spec.?template.?spec.?restartPolicy.orValue('') == 'Never'
  ? [[dyn('containers'), dyn(g.containers)], [dyn('initContainers'), dyn(g.spec.?template.?spec.?initContainers.orValue([]))]].map(l,
    l[1].map(c, c.?resizePolicy.orValue([]).filter(p, p.?restartPolicy.orValue('') == 'RestartContainer')
    .map(p, '.template.spec.' + l[0] + '[name=' + c.name + '].resizePolicy for ' + p.resourceName + ' is RestartContainer, in a pod that never restarts containers').join('\n')).join('\n'))
  : []"#,
            fix: "Write NotRequired.",
        },
    ],
    PLAIN,
);

const NEVER: &str = "The API server refuses every pod of the group: where a container is never \
                     restarted, a resize cannot restart it either.";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    // KubeRay goes by the field alone: the environment variable that chooses v2 does not count.
    let by_kuberay =
        cluster.autoscaling() && cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    for group in cluster.groups() {
        let listed = group
            .name
            .is_some_and(|name| subject.object.ippr.lists(name));
        let never = by_kuberay || is_never(group);
        if !listed && !never {
            continue;
        }
        for container in group.containers() {
            // Only the first container is resized.
            let listed = listed && container.index == 0;
            let path = group.container_path(&container);
            check_container(group, (container.spec, path), (listed, never), findings);
        }
        for (index, spec) in init_containers(group) {
            let path = group.init_container_path(index, spec);
            check_container(group, (spec, path), (false, never), findings);
        }
    }
}

fn is_never(group: &Group<'_>) -> bool {
    let policy = group
        .pod_spec()
        .and_then(|pod| text_at(pod, "restartPolicy"));
    policy == Some("Never")
}

fn init_containers<'a>(group: &Group<'a>) -> impl Iterator<Item = (usize, &'a Fields)> {
    let pod = group.pod_spec();
    pod.map_or(&[][..], |pod| list_at(pod, "initContainers"))
        .iter()
        .enumerate()
        .filter_map(|(index, spec)| Some((index, spec.as_object()?)))
}

fn check_container(
    group: &Group<'_>,
    (container, path): (&Fields, FieldPath),
    (listed, never): (bool, bool),
    findings: &mut Findings,
) {
    let entries = list_at(container, "resizePolicy").iter().enumerate();
    for (index, entry) in entries {
        let Some(restart) = restart_of(entry) else {
            continue;
        };
        let path = (path.clone())
            .key("resizePolicy")
            .index(index)
            .key("restartPolicy");
        if listed && is_resized(entry) {
            findings.add(finding(path, restart));
        } else if never && restart == "RestartContainer" {
            findings.add(refused(path, restart, group));
        }
    }
}

/// What an entry says, if it is anything but `NotRequired`, which also holds where it says nothing.
fn restart_of(entry: &Value) -> Option<&Value> {
    entry
        .get("restartPolicy")
        .filter(|restart| !restart.is_null() && *restart != "NotRequired")
}

fn is_resized(entry: &Value) -> bool {
    let resource = entry.get("resourceName").and_then(Value::as_str);
    Resource::ALL
        .iter()
        .any(|known| resource == Some(known.name()))
}

fn finding(path: FieldPath, restart: &Value) -> Finding {
    RULE.finding(
        path,
        format!("{} in a group that is to grow in place", shown(restart)),
        "Write NotRequired.",
    )
    .valued(shown(restart))
}

fn refused(path: FieldPath, restart: &Value, group: &Group<'_>) -> Finding {
    let cause = if is_never(group) {
        "the template's restartPolicy is Never"
    } else {
        "KubeRay sets restartPolicy Never for autoscalerOptions.version v2"
    };
    RULE.finding(
        path,
        format!("{} is not allowed here: {cause}", shown(restart)),
        "Write NotRequired, or remove the entry.",
    )
    .because(NEVER)
    .valued(shown(restart))
}
