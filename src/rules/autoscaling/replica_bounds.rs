//! RF201: replica counts that contradict each other or are negative.

use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::Group;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF201
pub static RULE: Rule = Rule {
    id: RuleId(201),
    name: "replica-bounds",
    mode: OwnMode::ByCase("Enforce; Warn where replicas is above maxReplicas"),
    summary: "Negative counts of replicas, no hosts, or `minReplicas` above `maxReplicas`",
    page: RulePage(include_str!("replica_bounds.md")),
    why: "KubeRay stops reconciling the whole cluster because of it, and Ray stops scaling it.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[
    Check {
        each: Each::Worker,
        mode: Mode::Enforce,
        faults: r#"['replicas', 'minReplicas', 'maxReplicas', 'numOfHosts'].filter(k, k in g.spec && g.spec[k] < (k == 'numOfHosts' ? 1 : 0)).map(k, '.' + k + ' ' + string(g.spec[k]) + ' is too low')
+ (has(g.spec.minReplicas) && has(g.spec.maxReplicas) && g.spec.maxReplicas >= 0 && g.spec.minReplicas > g.spec.maxReplicas
  ? ['.minReplicas ' + string(g.spec.minReplicas) + ' is above maxReplicas ' + string(g.spec.maxReplicas)] : [])"#,
        fix: "Write numbers of at least 0 (numOfHosts: 1), and minReplicas not above maxReplicas.",
    },
    Check {
        each: Each::Worker,
        mode: Mode::Warn,
        faults: r#"has(g.spec.replicas) && has(g.spec.maxReplicas) && g.spec.maxReplicas >= 0 && g.spec.replicas > g.spec.maxReplicas
  ? ['.replicas ' + string(g.spec.replicas) + ' is above maxReplicas ' + string(g.spec.maxReplicas)] : []"#,
        fix: "Raise maxReplicas or lower replicas (with autoscaling on, leave replicas out).",
    },
]);

const MISLEADING: &str = "KubeRay uses minReplicas instead, so the number hides how many workers \
                          there will be.";
const HOSTS: &str = "Ray's autoscaler divides by it, and fails in every round, for all groups.";
const CLAMPED: &str = "KubeRay never creates more workers than maxReplicas, so there will be fewer \
                       than replicas says.";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    for group in &cluster.workers {
        check_signs(group, findings);
        check_order(group, cluster.autoscaling(), findings);
    }
}

fn check_signs(group: &Group<'_>, findings: &mut Findings) {
    for key in ["replicas", "minReplicas", "maxReplicas", "numOfHosts"] {
        let (what, least) = match key {
            "numOfHosts" => ("hosts", 1),
            _ => ("workers", 0),
        };
        let Some(count) = group.integer(key).filter(|count| *count < least) else {
            continue;
        };
        let negative = if count < 0 {
            "a negative number of"
        } else {
            "no"
        };
        let finding = RULE
            .finding(
                group.path().key(key),
                format!("{count} is {negative} {what}"),
                format!("Write {key}: {least} or more."),
            )
            .valued(count.to_string());
        findings.add(match key {
            "replicas" => finding.because(MISLEADING),
            "numOfHosts" => finding.because(HOSTS),
            _ => finding,
        });
    }
}

fn check_order(group: &Group<'_>, autoscaling: bool, findings: &mut Findings) {
    // Negative numbers have been reported already.
    let count = |key| group.integer(key).filter(|count| *count >= 0);
    let Some(max) = count("maxReplicas") else {
        return;
    };
    if let Some(min) = count("minReplicas").filter(|min| *min > max) {
        findings.add(
            RULE.finding(
                group.path().key("minReplicas"),
                format!("{min} is above maxReplicas, which is {max}"),
                format!("Lower minReplicas to {max} or raise maxReplicas to {min}."),
            )
            .amounting("excess", Quantity::from_units(min - max))
            .valued(format!("min {min} > max {max}")),
        );
    }
    if let Some(replicas) = count("replicas").filter(|replicas| *replicas > max) {
        let fix = if autoscaling {
            // The scaler writes replicas; lowering it by hand works against the scaler (RF305).
            format!(
                "Leave out replicas, which the autoscaler writes, or raise maxReplicas to \
                 {replicas}."
            )
        } else {
            format!("Lower replicas to {max} or raise maxReplicas to {replicas}.")
        };
        findings.add(
            RULE.finding(
                group.path().key("replicas"),
                format!("{replicas} is above maxReplicas, which is {max}"),
                fix,
            )
            // A scaler that takes workers away one by one does not add to it.
            .amounting("excess", Quantity::from_units(replicas - max))
            .valued(format!("replicas {replicas} > max {max}"))
            .because(CLAMPED)
            .in_mode(Mode::Warn),
        );
    }
}
