//! RF503: a pod larger than a policy allows.

use super::extent::{allowance, most_of_pod, without_limit};
use crate::ray::pod_size::PodMost;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(503),
    name: "pod-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A pod with more CPU or memory than a RayPolicy allows, resize limits in \
              `ray.io/ippr` included",
    page: include_str!("pod_size.md"),
    why: "The cluster's admins limit how large a pod may become.",
    cel: Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    let limits = &subject.settings.limits;
    let limits = [
        (Resource::Cpu, &limits.max_cpu_per_pod),
        (Resource::Memory, &limits.max_memory_per_pod),
    ];
    let pairs = cluster
        .groups()
        .flat_map(|group| limits.map(|limit| (group, limit)));
    for (group, (resource, limit)) in pairs {
        let Some(limit) = limit else { continue };
        let PodMost { written, unbounded } = most_of_pod(subject, (cluster, group), resource);
        for missing in &unbounded {
            let of = (limit, "the whole pod");
            findings.push(without_limit(&RULE, (group, missing), resource, of));
        }
        if written <= limit.most {
            continue;
        }
        let resize_limits = subject.resize_limits(group);
        // A LimitRange would be checked only once the pod is made, and again at each resize.
        let path = match resize_limits.filter(|limits| limits.amount(resource).is_some()) {
            Some(resize_limits) => resize_limits.key_path(resource.limit_key()),
            None => group.ray_container_path().key("resources"),
        };
        let (shown, most) = (resource.say(written), resource.say(limit.most));
        let problem = format!(
            "a pod of {} may grow to {shown} in all, and {}",
            group.title(),
            allowance(limit, &most)
        );
        let fix = format!("Lower it so that the whole pod has {most} or less.");
        let finding = RULE.finding(path, problem, fix);
        let finding = finding.amounting(resource.name(), written);
        findings.push(finding.valued(shown));
    }
}
