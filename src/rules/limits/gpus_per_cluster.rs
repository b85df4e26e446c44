//! RF504: more GPUs in a cluster than a policy allows.

use super::{Count, allowance};
use crate::finding::RuleId;
use crate::policy::Mode;
use crate::ray::{Group, node_resources};
use crate::rules::{Findings, OwnMode, Rule, Subject, cel::Cel};

/// RF504
pub static RULE: Rule = Rule {
    id: RuleId(504),
    name: "gpus-per-cluster",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More GPUs in a cluster, with all its workers, than a RayPolicy allows",
    what: "Adds up the GPUs of the head and of every worker that the groups may come to, as Ray \
           counts them: `num-gpus`, or the GPUs in the ray container's limits. Only where a \
           RayPolicy sets `limits.maxGpusPerCluster`.",
    why: "The cluster's admins limit how many GPUs a Ray cluster may take.",
    bad: r#"
# where a RayPolicy sets maxGpusPerCluster: 8
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - {groupName: gpu, maxReplicas: 10, rayStartParams: {num-gpus: "4"}}
"#,
    good: r#"
# where a RayPolicy sets maxGpusPerCluster: 8
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - {groupName: gpu, maxReplicas: 2, rayStartParams: {num-gpus: "4"}}
"#,
    without: "KubeRay and Ray have no limit of this kind; a ResourceQuota of the namespace counts \
              what runs, for all clusters together (Kubernetes, ResourceQuota).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let limit = subject.settings.limits.gpus_per_cluster.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    let mut sum: i64 = 0;
    let mut shown = None;
    for group in cluster.groups() {
        match (gpus(group), Count::of(cluster, group)) {
            (0, _) => {}
            (_, Count::Unbounded) => {
                shown = Some(format!(
                    "any number of GPUs, since {} has no maxReplicas",
                    group.title()
                ));
            }
            (gpus, Count::AtMost(count)) => sum = sum.saturating_add(gpus.saturating_mul(count)),
        }
    }
    let over = (sum > limit.most).then(|| format!("{sum} GPUs"));
    let Some(shown) = shown.or(over) else { return };
    let problem = format!(
        "the cluster may come to {shown}, and {}",
        allowance(limit, &limit.most.to_string())
    );
    let fix = format!(
        "Lower maxReplicas of the groups with GPUs, to {} GPUs together.",
        limit.most
    );
    let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
    findings.add(finding.valued(shown));
}

/// The GPUs of a pod, as Ray counts them; what Ray cannot read is another rule's matter.
fn gpus(group: &Group<'_>) -> i64 {
    let derived = node_resources::gpu(group).ok().flatten();
    derived.map_or(0, |derived| derived.amount.max(0))
}
