//! RF220: workers to be deleted under the autoscaler's hands.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{Fields, list_at, object_at, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF220
pub static RULE: Rule = Rule {
    id: RuleId(220),
    name: "job-deletion-policy",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A RayJob deletes its workers when it ends, with autoscaling on",
    page: RulePage(include_str!("job_deletion_policy.md")),
    why: "KubeRay cannot suspend worker groups that the autoscaler scales, so it considers the job \
          invalid and does not run it.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Enforce,
    faults: r#"!s.auto ? [] : [s.object.kind == 'RayJob' ? s.object.?spec.?deletionStrategy.orValue({}) : s.object.kind == 'RayCronJob' ? s.object.?spec.?jobTemplate.?deletionStrategy.orValue({}) : {}]
  .map(strategy, (['onSuccess', 'onFailure'].filter(k, k in strategy && strategy[k].?policy.orValue('') == 'DeleteWorkers').map(k, 'deletionStrategy.' + k + ' is DeleteWorkers')
  + strategy.?deletionRules.orValue([]).filter(r, r.?policy.orValue('') == 'DeleteWorkers').map(r, 'deletionStrategy.deletionRules has DeleteWorkers')).join('\n'))"#,
    fix: "Write policy: DeleteCluster or DeleteNone, or set enableInTreeAutoscaling: false.",
}]);

const POLICY: &str = "DeleteWorkers";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.autoscaled().is_none() {
        return;
    }
    let Some((spec, path)) = subject.object.job() else {
        return;
    };
    if let Some(strategy) = object_at(spec, "deletionStrategy") {
        check_strategy(strategy, &path.key("deletionStrategy"), findings);
    }
}

fn check_strategy(strategy: &Fields, path: &FieldPath, findings: &mut Findings) {
    for key in ["onSuccess", "onFailure"] {
        if object_at(strategy, key).is_some_and(deletes_workers) {
            report(path.clone().key(key), findings);
        }
    }
    let rules = list_at(strategy, "deletionRules").iter();
    for (index, rule) in rules.map(Value::as_object).enumerate() {
        if rule.is_some_and(deletes_workers) {
            report(path.clone().key("deletionRules").index(index), findings);
        }
    }
}

fn deletes_workers(step: &Fields) -> bool {
    text_at(step, "policy") == Some(POLICY)
}

fn report(step: FieldPath, findings: &mut Findings) {
    findings.add(
        RULE.finding(
            step.key("policy"),
            format!("{POLICY} is not possible with autoscaling on"),
            "Write policy: DeleteCluster; or DeleteNone, because the autoscaler removes idle \
             workers by itself; or set enableInTreeAutoscaling: false.",
        )
        .valued(POLICY),
    );
}
