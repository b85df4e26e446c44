//! RF506: more CPU or memory in a cluster than a policy allows.

use super::extent::{Count, UNLIMITED, allowance, beyond, most_of_pod, plus, without_limit};
use crate::policy::{Limit, Mode};
use crate::quantity::Quantity;
use crate::ray::{Cluster, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF506
pub static RULE: Rule = Rule {
    id: RuleId(506),
    name: "cluster-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More CPU or memory in a cluster, with all its workers at their resize limits, than a \
              RayPolicy allows",
    page: RulePage(include_str!("cluster_size.md")),
    why: "The cluster's admins limit how much CPU and memory a Ray cluster may use.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    let limits = &subject.settings.limits;
    for (resource, limit) in [
        (Resource::Cpu, &limits.cpu_per_cluster),
        (Resource::Memory, &limits.memory_per_cluster),
    ] {
        if let Some(limit) = limit {
            check_total(subject, cluster, (resource, limit), findings);
        }
    }
}

fn check_total(
    subject: &Subject<'_>,
    cluster: &Cluster<'_>,
    (resource, limit): (Resource, &Limit<Quantity>),
    findings: &mut Findings,
) {
    let mut total = Some(Quantity::ZERO);
    for group in cluster.groups() {
        let count = Count::of(cluster, group);
        let pod = most_of_pod(subject, (cluster, group), resource);
        // A group that is turned off (`maxReplicas: 0`) has no pod that could take anything.
        for missing in pod.unbounded.iter().filter(|_| count != Count::AtMost(0)) {
            let of = (limit, "the whole cluster");
            findings.add(without_limit(&RULE, (group, missing), resource, of));
        }
        total = total.and_then(|sum| plus(sum, pod.written, count));
    }
    let Some(shown) = beyond(total, limit.most, resource) else {
        return;
    };
    let most = resource.say(limit.most);
    let problem = format!(
        "the cluster may grow to {shown}, and {}",
        allowance(limit, &most)
    );
    let fix = format!(
        "Lower maxReplicas or the resize limits of the groups so that they have \
                       {most} together."
    );
    let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
    let finding = finding.amounting(resource.name(), total.unwrap_or(UNLIMITED));
    findings.add(finding.valued(shown));
}
