//! RF201: replica counts that contradict each other or are negative.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(201),
    name: "replica-bounds",
    mode: OwnMode::ByCase("Enforce; Warn where replicas is above maxReplicas"),
    summary: "Negative counts of replicas, no hosts, or `minReplicas` above `maxReplicas`",
    page: include_str!("replica_bounds.md"),
    why: "KubeRay stops reconciling the whole cluster because of it, and Ray stops scaling it.",
    cel: Cel::WithWarnings(
        &Cel::Covered(&[Check {
            each: Each::Worker,
            faults: r#"['replicas', 'minReplicas', 'maxReplicas', 'numOfHosts'].filter(k, k in g.spec && g.spec[k] < (k == 'numOfHosts' ? 1 : 0)).map(k, '.' + k + ' ' + string(g.spec[k]) + ' is too low')
+ (has(g.spec.minReplicas) && has(g.spec.maxReplicas) && g.spec.maxReplicas >= 0 && g.spec.minReplicas > g.spec.maxReplicas
  ? ['.minReplicas ' + string(g.spec.minReplicas) + ' is above maxReplicas ' + string(g.spec.maxReplicas)] : [])"#,
            fix: "Write numbers of at least 0 (numOfHosts: 1), and minReplicas not above maxReplicas.",
        }]),
        &[Check {
            each: Each::Worker,
            faults: r#"has(g.spec.replicas) && has(g.spec.maxReplicas) && g.spec.maxReplicas >= 0 && g.spec.replicas > g.spec.maxReplicas
  ? ['.replicas ' + string(g.spec.replicas) + ' is above maxReplicas ' + string(g.spec.maxReplicas)] : []"#,
            fix: "Raise maxReplicas or lower replicas (with autoscaling on, leave replicas out).",
        }],
    ),
    check,
};

const MISLEADING: &str = "KubeRay uses minReplicas instead, so the number hides how many workers \
                          there will be.";
const HOSTS: &str = "Ray's autoscaler divides by it, and fails in every round, for all groups.";
const CLAMPED: &str = "KubeRay never creates more workers than maxReplicas, so there will be fewer \
                       than replicas says.";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let autoscaling = subject.autoscaled().is_some();
    for group in subject.workers() {
        for (key, what, least, why) in [
            ("replicas", "workers", 0, MISLEADING),
            ("minReplicas", "workers", 0, RULE.why),
            ("maxReplicas", "workers", 0, RULE.why),
            ("numOfHosts", "hosts", 1, HOSTS),
        ] {
            let Some(count) = group.integer(key).filter(|count| *count < least) else {
                continue;
            };
            let negative = if count < 0 {
                "a negative number of"
            } else {
                "no"
            };
            let finding = RULE.finding(
                group.path().key(key),
                format!("{count} is {negative} {what}"),
                format!("Write {key}: {least} or more."),
            );
            let finding = finding.valued(count.to_string()).because(why);
            findings.push(finding.mended_by(least));
        }
        // Negative numbers have been reported already.
        let count = |key| group.integer(key).filter(|count| *count >= 0);
        let Some(max) = count("maxReplicas") else {
            continue;
        };
        // Ray fails an assertion on it in every round, for all groups (`NodeTypeConfig`).
        if let Some(min) = count("minReplicas").filter(|min| *min > max) {
            let finding = RULE.finding(
                group.path().key("minReplicas"),
                format!("{min} is above maxReplicas, which is {max}"),
                format!("Lower minReplicas to {max} or raise maxReplicas to {min}."),
            );
            let finding = finding.amounting("excess", Quantity::from_units(min - max));
            let finding = finding.valued(format!("min {min} > max {max}"));
            findings.push(finding.mended_by(max));
        }
        if let Some(replicas) = count("replicas").filter(|replicas| *replicas > max) {
            let (lower, mend) = if autoscaling {
                // The scaler writes replicas; lowering it by hand works against the scaler (RF305).
                let lower = "Leave out replicas, which the autoscaler writes,";
                (lower.to_owned(), Value::Null)
            } else {
                (format!("Lower replicas to {max}"), max.into())
            };
            let finding = RULE.finding(
                group.path().key("replicas"),
                format!("{replicas} is above maxReplicas, which is {max}"),
                format!("{lower} or raise maxReplicas to {replicas}."),
            );
            // A scaler that takes workers away one by one does not add to it.
            let finding = finding.amounting("excess", Quantity::from_units(replicas - max));
            let finding = finding.valued(format!("replicas {replicas} > max {max}"));
            let finding = finding.because(CLAMPED).in_mode(Mode::Warn);
            findings.push(finding.mended_by(mend));
        }
    }
}
