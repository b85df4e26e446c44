//! RF501: more workers in a cluster than a policy allows.

use super::extent::{Count, allowance};
use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF501
pub static RULE: Rule = Rule {
    id: RuleId(501),
    name: "workers-per-cluster",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "More workers in a cluster than a RayPolicy allows",
    page: RulePage(include_str!("workers_per_cluster.md")),
    why: "The cluster's admins limit how large a Ray cluster may become.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let limit = subject.settings.limits.workers_per_cluster.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.cluster()) else {
        return;
    };
    let counts = cluster
        .workers
        .iter()
        .map(|group| Count::of(cluster, group));
    let count = Count::sum(counts);
    let shown = match count {
        Count::AtMost(count) if count <= limit.most => return,
        Count::AtMost(count) => format!("{count} workers together"),
        Count::Unbounded => "any number of workers, because a group has no maxReplicas".to_owned(),
    };
    let problem = format!(
        "the groups may grow to {shown}, and {}",
        allowance(limit, &limit.most.to_string())
    );
    let fix = format!(
        "Lower maxReplicas of the groups so that they have {} together.",
        limit.most
    );
    let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
    let finding = finding.amounting("workers", count.amount());
    findings.add(finding.valued(shown));
}
