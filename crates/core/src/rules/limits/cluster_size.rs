//! RF506: more CPU or memory in a cluster than a policy allows.

use super::extent::{UNLIMITED, allowance, most_of_pod, most_pods, without_limit};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(506),
    name: "cluster-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More CPU or memory in a cluster, with all its workers at their resize limits, than a \
              RayPolicy allows",
    page: include_str!("cluster_size.md"),
    why: "The cluster's admins limit how much CPU and memory a Ray cluster may use.",
    cel: Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    let limits = &subject.settings.limits;
    for (resource, limit) in [
        (Resource::Cpu, &limits.max_cpu_per_cluster),
        (Resource::Memory, &limits.max_memory_per_cluster),
    ] {
        let Some(limit) = limit else {
            continue;
        };
        // A ResourceQuota counts what runs in a namespace; this is what the cluster can come to.
        // The sum with all pods of all groups; `None` if it is unlimited.
        let mut total = Some(Quantity::ZERO);
        for group in cluster.groups() {
            let count = most_pods(cluster, group);
            let pod = most_of_pod(subject, (cluster, group), resource);
            // A group that is turned off (`maxReplicas: 0`) has no pod that could take anything.
            for missing in pod.unbounded.iter().filter(|_| count != Some(0)) {
                let of = (limit, "the whole cluster");
                findings.push(without_limit(&RULE, (group, missing), resource, of));
            }
            // Pods without any of it stay within every limit even in a group without maxReplicas.
            if !pod.written.is_zero() {
                let all = count.and_then(|count| pod.written.checked_mul(count));
                total = total.and_then(|sum| sum.checked_add(all?));
            }
        }
        let shown = match total {
            Some(total) if total <= limit.most => continue,
            Some(total) => format!("{} in all", resource.say(total)),
            None => format!(
                "any amount of {}, because a group has no maxReplicas",
                resource.title()
            ),
        };
        let most = resource.say(limit.most);
        let allowance = allowance(limit, &most);
        let finding = RULE.finding(
            cluster.path().key("workerGroupSpecs"),
            format!("the cluster may grow to {shown}, and {allowance}"),
            format!(
                "Lower maxReplicas or the resize limits of the groups so that they have {most} \
                 together."
            ),
        );
        let finding = finding.amounting(resource.name(), total.unwrap_or(UNLIMITED));
        findings.push(finding.valued(shown));
    }
}
