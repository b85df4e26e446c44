//! RF503: a pod larger than a policy allows.

use super::extent::{allowance, most_of_pod, without_limit};
use crate::policy::Mode;
use crate::ray::pod_size::PodMost;
use crate::ray::{Cluster, Group, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF503
pub static RULE: Rule = Rule {
    id: RuleId(503),
    name: "pod-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A pod with more CPU or memory than a RayPolicy allows, resize limits in \
              `ray.io/ippr` included",
    page: RulePage(include_str!("pod_size.md")),
    why: "The cluster's admins limit how large a pod may become.",
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
