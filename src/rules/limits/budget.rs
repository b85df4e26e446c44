//! RF507: a cluster that may grow beyond a budget.

use super::extent::{Count, UNLIMITED, beyond, most_of_pod, plus};
use super::gpus_per_cluster;
use crate::budget::amounts::BudgetAmounts;
use crate::budget::limit::Budget;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Kind, ReconcileMode, Resource};
use crate::rule_id::RuleId;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF507
pub static RULE: Rule = Rule {
    id: RuleId(507),
    name: "beyond-budget",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A cluster that could grow, with all its workers at their resize limits, beyond the \
              budget of a RayPolicy",
    what: "Adds up the head and the maximum number of workers of all groups, each at its resize \
           limit in `ray.io/ippr` if it has one, and compares the sum with each \
           `reconcile.budget` that holds for the cluster. Only for clusters in mode `central` \
           with strategy `rayfit`, for which budgets hold. What containers without a limit may take is not counted. GPUs are \
           counted as by RF504. Each cluster is compared alone. Of clusters that exceed a budget \
           only together, the background audit tells in the condition `BeyondBudget` of the RayPolicy.",
    why: "The cluster will never have all the workers that it asks for: what is beyond the budget, \
          which other clusters share, is not launched.",
    bad: r#"
# where a RayPolicy sets reconcile.budget: {cpu: 100}
metadata:
  annotations: {rayfit.dev/reconcile: central}
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: a
    maxReplicas: 50
    template: {spec: {containers: [{name: ray, resources: {limits: {cpu: 4}}}]}}
"#,
    good: r#"
# where a RayPolicy sets reconcile.budget: {cpu: 100}
metadata:
  annotations: {rayfit.dev/reconcile: central}
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: a
    maxReplicas: 20
    template: {spec: {containers: [{name: ray, resources: {limits: {cpu: 4}}}]}}
"#,
    without: "KubeRay and Ray have no budget; with a ResourceQuota in its place, pods beyond it are \
              refused when they are created (Kubernetes, ResourceQuota).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Budgets are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let budgets = &subject.settings.reconcile.budgets;
    if !are_kept(subject) || budgets.is_empty() {
        return;
    }
    if let Some(cluster) = subject.cluster() {
        for budget in budgets.iter() {
            check_one(subject, cluster, budget, findings);
        }
    }
}

/// Whether budgets hold for the cluster.
fn are_kept(subject: &Subject<'_>) -> bool {
    let is_central = subject.object.reconcile_mode() == ReconcileMode::Central;
    // Strategy `ray` decides as Ray does, which knows no budgets.
    is_central && subject.settings.reconcile.strategy.is_rayfit()
}

fn check_one(
    subject: &Subject<'_>,
    cluster: &Cluster<'_>,
    budget: &Budget,
    findings: &mut Findings,
) {
    let total = budget.total;
    for (resource, most) in [
        (Resource::Cpu, amount(total.cpu_milli, Quantity::from_milli)),
        (
            Resource::Memory,
            amount(total.memory_bytes, Quantity::from_units),
        ),
    ] {
        let Some(most) = most else { continue };
        let sum = sum(subject, cluster, resource);
        let Some(shown) = beyond(sum, most, resource) else {
            continue;
        };
        let (policy, most) = (shown_text(&budget.policy), resource.say(most));
        let problem = format!(
            "the cluster may grow to {shown}, beyond the {most} that RayPolicy {policy} has for all \
             its clusters together"
        );
        let fix = format!(
            "Lower maxReplicas or the resize limits of the groups, so that they have {most} together \
             or less."
        );
        let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
        let finding = finding.amounting(resource.name(), sum.unwrap_or(UNLIMITED));
        findings.add(finding.valued(shown));
    }
    let gpus = i64::try_from(total.gpus)
        .ok()
        .filter(|_| total.gpus != BudgetAmounts::UNBOUNDED);
    let Some(gpus) = gpus else { return };
    if let Some(shown) = gpus_per_cluster::beyond(cluster, gpus) {
        let policy = shown_text(&budget.policy);
        let problem = format!(
            "the cluster may grow to {shown}, beyond the {gpus} that RayPolicy {policy} has for all its \
             clusters together"
        );
        let fix = format!(
            "Lower maxReplicas of the groups with GPUs so that they have {gpus} GPUs together or less."
        );
        let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
        let finding = finding.amounting("gpu", gpus_per_cluster::amount(cluster));
        findings.add(finding.valued(shown));
    }
}

/// The most that a cluster for which budgets hold may use, with all its workers at their resize limits;
/// unbounded where nothing limits it. `None` if no budget holds for it, or it is a part of another object.
pub fn most(subject: &Subject<'_>) -> Option<BudgetAmounts> {
    // The cluster of a RayJob or RayService is stored as a RayCluster too and would be counted
    // twice.
    let counts = are_kept(subject) && subject.kind() == Kind::RayCluster;
    let cluster = subject.cluster().filter(|_| counts)?;
    let whole = |amount: Option<i128>| {
        let amount = amount.map(|amount| u64::try_from(amount).unwrap_or(BudgetAmounts::UNBOUNDED));
        amount.unwrap_or(BudgetAmounts::UNBOUNDED)
    };
    let gpus = gpus_per_cluster::sum(cluster).ok().map(i128::from);
    Some(BudgetAmounts {
        cpu_milli: whole(sum(subject, cluster, Resource::Cpu).map(Quantity::ceil_milli)),
        memory_bytes: whole(sum(subject, cluster, Resource::Memory).map(Quantity::ceil_units)),
        gpus: whole(gpus),
    })
}

/// What a budget bounds, as a quantity.
fn amount(amount: u64, unit: impl Fn(i64) -> Quantity) -> Option<Quantity> {
    let bounded = (amount != BudgetAmounts::UNBOUNDED).then_some(amount)?;
    Some(unit(i64::try_from(bounded).ok()?))
}

/// The most that a cluster may use; `None` if it is unlimited.
fn sum(subject: &Subject<'_>, cluster: &Cluster<'_>, resource: Resource) -> Option<Quantity> {
    let mut groups = cluster.groups();
    groups.try_fold(Quantity::ZERO, |sum, group| {
        let pod = most_of_pod(subject, (cluster, group), resource).written;
        plus(sum, pod, Count::of(cluster, group))
    })
}
