//! RF503: a pod larger than a policy allows.

use super::extent::{allowance, most_of_pod, without_limit};
use crate::policy::Mode;
use crate::ray::pod_size::PodMost;
use crate::ray::{Cluster, Group, Resource};
use crate::rule_id::RuleId;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF503
pub static RULE: Rule = Rule {
    id: RuleId(503),
    name: "pod-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A pod with more CPU or memory than a RayPolicy allows, resize limits in \
              `ray.io/ippr` included",
    what: "Adds up the maximum that a pod of each group may use, as Kubernetes does: its ray \
           container, at its resize limit in `ray.io/ippr` if that is above its size; its other \
           containers, including the autoscaler's; init containers where they need more; the pod's \
           overhead; or the pod's own `resources`, if they are more. A container without a limit \
           may use everything that a node has, and is reported, unless the pod's own `resources` \
           limit it (from Kubernetes 1.34 on) or a LimitRange of the namespace gives it one. Only \
           where a RayPolicy sets `limits.maxCpuPerPod` or `limits.maxMemoryPerPod`. Not counted: \
           the pod with which a RayJob submits its job (`submitterPodTemplate`), and the init \
           container that KubeRay adds to workers (200m and 256Mi).",
    why: "The cluster's admins limit how large a pod may become.",
    bad: r#"
# where a RayPolicy sets maxCpuPerPod: 16
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"64","max-memory":"8Gi","resize-timeout":300}}}'
"#,
    good: r#"
# where a RayPolicy sets maxCpuPerPod: 16
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"16","max-memory":"8Gi","resize-timeout":300}}}'
"#,
    without: "A LimitRange is checked when a pod is created and again at each resize, long after \
              the RayCluster was applied (Kubernetes, admission plugin LimitRanger).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    for group in cluster.groups() {
        for resource in Resource::ALL {
            check_group(subject, (cluster, group), resource, findings);
        }
    }
}

fn check_group(
    subject: &Subject<'_>,
    (cluster, group): (&Cluster<'_>, &Group<'_>),
    resource: Resource,
    findings: &mut Findings,
) {
    let limits = &subject.settings.limits;
    let limit = match resource {
        Resource::Cpu => &limits.cpu_per_pod,
        Resource::Memory => &limits.memory_per_pod,
    };
    let Some(limit) = limit else { return };
    let PodMost { written, unbounded } = most_of_pod(subject, (cluster, group), resource);
    for missing in &unbounded {
        let of = (limit, "the whole pod");
        findings.add(without_limit(&RULE, (group, missing), resource, of));
    }
    if written <= limit.most {
        return;
    }
    let resize_limits = group
        .name
        .and_then(|name| subject.object.ippr.resize_limits(name));
    let path = match resize_limits.filter(|resize_limits| resize_limits.amount(resource).is_some())
    {
        Some(resize_limits) => resize_limits.key_path(resource.limit_key()),
        None => group.ray_container_path().key("resources"),
    };
    let shown = resource.say(written);
    let most = resource.say(limit.most);
    let problem = format!(
        "a pod of {} may grow to {shown} in all, and {}",
        group.title(),
        allowance(limit, &most)
    );
    let fix = format!("Lower it so that the whole pod has {most} or less.");
    let finding = RULE.finding(path, problem, fix);
    let finding = finding.amounting(resource.name(), written);
    findings.add(finding.valued(shown));
}
