//! RF108: a `resizePolicy` that would restart Ray, or that no pod can have.

use crate::rules::prelude::*;
use crate::rules::shared::all_containers;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(108),
    name: "resize-policy",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "a `resizePolicy` that would restart Ray, or that Kubernetes refuses",
    page: include_str!("resize_policy.md"),
    why: "A resize would restart the container and lose the work in it, so Ray refuses the whole \
          annotation and stops autoscaling the cluster.",
    cel: Cel::InPart(
        &[
            Check {
                each: Each::Listed,
                faults: r#"g.containers.size() == 0 ? [] : g.containers[0].?resizePolicy.orValue([])
  .filter(p, p.resourceName in ['cpu', 'memory'] && p.?restartPolicy.orValue('NotRequired') != 'NotRequired')
  .map(p, '.template.spec.containers[0].resizePolicy for ' + p.resourceName + ' is ' + p.restartPolicy)"#,
                fix: "Write NotRequired.",
            },
            Check {
                each: Each::Group,
                faults: r#"(s.auto && s.version == 'v2') || g.spec.?template.?spec.?restartPolicy.orValue('') == 'Never'
  ? [[dyn('containers'), dyn(g.containers)], [dyn('initContainers'), dyn(g.spec.?template.?spec.?initContainers.orValue([]))]].map(l,
    l[1].map(c, c.?resizePolicy.orValue([]).filter(p, p.?restartPolicy.orValue('') == 'RestartContainer')
    .map(p, '.template.spec.' + l[0] + '[name=' + c.name + '].resizePolicy for ' + p.resourceName + ' is RestartContainer, in a pod that never restarts containers').join('\n')).join('\n'))
  : []"#,
                fix: "Write NotRequired.",
            },
        ],
        PLAIN,
    ),
    check,
};

const NEVER: &str = "The API server refuses every pod of the group: where a container is never \
                     restarted, a resize cannot restart it either.";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    // KubeRay goes by the field alone: the environment variable that chooses v2 does not count.
    let by_kuberay =
        cluster.autoscaling() && cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    for group in cluster.groups() {
        let is_listed = subject.resize_limits(group).is_some();
        let policy = group.pod_spec.and_then(|pod| pod.text("restartPolicy"));
        let by_template = policy == Some("Never");
        if !is_listed && !by_kuberay && !by_template {
            continue;
        }
        // The API server admits a template and refuses its pods later: with `restartPolicy: Never` a pod may have
        // nothing but `NotRequired` (`validateResizePolicy`).
        // Only the first container is resized.
        let is_first = is_listed && group.ray_container.is_some();
        let is_resized = std::iter::once(is_first).chain(std::iter::repeat(false));
        for ((container, path), is_resized) in all_containers(group).zip(is_resized) {
            let entries = container.spec.list("resizePolicy").iter().enumerate();
            for (index, entry) in entries {
                // `NotRequired` is the default.
                let restart = entry
                    .get("restartPolicy")
                    .filter(|restart| !restart.is_null());
                let Some(restart) = restart.filter(|restart| *restart != "NotRequired") else {
                    continue;
                };
                let place = path().key("resizePolicy").index(index);
                let place = place.key("restartPolicy");
                let resource = entry.get("resourceName");
                let mut resources = Resource::ALL.iter();
                let is_resized = is_resized
                    && resources.any(|known| resource.is_some_and(|name| name == known.name()));
                let finding = if is_resized {
                    let problem = format!("{} in a group that is to grow in place", shown(restart));
                    RULE.finding(place, problem, "Write NotRequired.")
                } else if (by_kuberay || by_template) && restart == "RestartContainer" {
                    let cause = if by_template {
                        "the template's restartPolicy is Never"
                    } else {
                        "KubeRay sets restartPolicy Never for autoscalerOptions.version v2"
                    };
                    let problem = format!("{} is not allowed here: {cause}", shown(restart));
                    let fix = "Write NotRequired, or remove the entry.";
                    RULE.finding(place, problem, fix).because(NEVER)
                } else {
                    continue;
                };
                findings.push(finding.valued(shown(restart)).mended_by("NotRequired"));
            }
        }
    }
}
