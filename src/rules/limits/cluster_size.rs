//! RF506: more CPU or memory in a cluster than a policy allows.

use super::{Count, allowance, of_pod};
use crate::finding::RuleId;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Ippr, Resource};
use crate::rules::{Findings, OwnMode, Rule, Subject, cel::Cel};

/// RF506
pub static RULE: Rule = Rule {
    id: RuleId(506),
    name: "cluster-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More CPU or memory in a cluster, with all its workers at their caps, than a RayPolicy \
              allows",
    what: "Adds up the head and every worker that the groups may come to, each at its cap in \
           `ray.io/ippr` if it has one, with all containers. Only where a RayPolicy sets \
           `limits.maxCpuPerCluster` or `limits.maxMemoryPerCluster`.",
    why: "The cluster's admins limit how much a Ray cluster may take.",
    bad: r#"
# where a RayPolicy sets maxCpuPerCluster: 100
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: a
    maxReplicas: 50
    template: {spec: {containers: [{name: ray, resources: {limits: {cpu: 4}}}]}}
"#,
    good: r#"
# where a RayPolicy sets maxCpuPerCluster: 100
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: a
    maxReplicas: 20
    template: {spec: {containers: [{name: ray, resources: {limits: {cpu: 4}}}]}}
"#,
    without: "KubeRay and Ray have no limit of this kind; a ResourceQuota of the namespace counts \
              what runs, for all clusters together (Kubernetes, ResourceQuota).",
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
        let Some(limit) = limit else { continue };
        let most = resource.say(limit.most);
        let shown = match total(cluster, &subject.object.ippr, resource) {
            Some(total) if total <= limit.most => continue,
            Some(total) => format!("{} in all", resource.say(total)),
            None => format!(
                "any amount of {}, since a group has no maxReplicas",
                resource.title()
            ),
        };
        let problem = format!(
            "the cluster may come to {shown}, and {}",
            allowance(limit, &most)
        );
        let fix = format!("Lower maxReplicas or the caps of the groups, to {most} together.");
        let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
        findings.add(finding.valued(shown));
    }
}

/// What all pods together may come to; `None` if there is no end to it.
fn total(cluster: &Cluster<'_>, ippr: &Ippr, resource: Resource) -> Option<Quantity> {
    cluster.groups().try_fold(Quantity::ZERO, |sum, group| {
        let pod = of_pod(cluster, group, ippr, resource);
        match Count::of(cluster, group) {
            _ if pod.is_zero() => Some(sum),
            Count::Unbounded => None,
            Count::AtMost(count) => pod.checked_mul(count).and_then(|all| sum.checked_add(all)),
        }
    })
}
