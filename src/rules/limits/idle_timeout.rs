//! RF505: idle workers kept longer than a policy allows.

use super::extent::allowance;
use crate::path::FieldPath;
use crate::policy::{Limit, Mode};
use crate::quantity::Quantity;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::cel::Cel;
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF505
pub static RULE: Rule = Rule {
    id: RuleId(505),
    name: "idle-timeout-limit",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Idle workers are kept longer than a RayPolicy allows",
    page: RulePage(include_str!("idle_timeout.md")),
    why: "Idle workers cost as much as busy ones.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let limit = subject.settings.limits.idle_timeout_seconds.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.autoscaled()) else {
        return;
    };
    let general = cluster.autoscaler_option("idleTimeoutSeconds");
    if let Some(seconds) = general.and_then(serde_json::Value::as_i64) {
        compare(
            limit,
            seconds,
            cluster.option_path("idleTimeoutSeconds"),
            findings,
        );
    }
    for group in &cluster.workers {
        if let Some(seconds) = group.integer("idleTimeoutSeconds") {
            compare(
                limit,
                seconds,
                group.path().key("idleTimeoutSeconds"),
                findings,
            );
        }
    }
}

fn compare(limit: &Limit<i64>, seconds: i64, path: FieldPath, findings: &mut Findings) {
    if seconds <= limit.most {
        return;
    }
    let problem = format!(
        "{seconds} seconds is too long: {}",
        allowance(limit, &limit.most.to_string())
    );
    let fix = format!("Write {} or less.", limit.most);
    let finding = RULE.finding(path, problem, fix);
    let finding = finding.amounting("seconds", Quantity::from_units(seconds));
    findings.add(finding.valued(seconds.to_string()));
}
