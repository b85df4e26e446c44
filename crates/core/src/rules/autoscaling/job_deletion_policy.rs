//! RF220: workers to be deleted under the autoscaler's hands.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(220),
    name: "job-deletion-policy",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A RayJob deletes its workers when it ends, with autoscaling on",
    page: include_str!("job_deletion_policy.md"),
    why: "KubeRay cannot suspend worker groups that the autoscaler scales, so it considers the job \
          invalid and does not run it.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r#"!s.auto ? [] : [s.object.kind == 'RayJob' ? s.object.?spec.?deletionStrategy.orValue({}) : s.object.kind == 'RayCronJob' ? s.object.?spec.?jobTemplate.?deletionStrategy.orValue({}) : {}]
  .map(strategy, (['onSuccess', 'onFailure'].filter(k, k in strategy && strategy[k].?policy.orValue('') == 'DeleteWorkers').map(k, 'deletionStrategy.' + k + ' is DeleteWorkers')
  + strategy.?deletionRules.orValue([]).filter(r, r.?policy.orValue('') == 'DeleteWorkers').map(r, 'deletionStrategy.deletionRules has DeleteWorkers')).join('\n'))"#,
        fix: "Write policy: DeleteCluster or DeleteNone, or set enableInTreeAutoscaling: false.",
    }]),
    check,
};

const POLICY: &str = "DeleteWorkers";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let job = subject
        .object
        .job()
        .filter(|_| subject.autoscaled().is_some());
    let Some((job, path)) = job else {
        return;
    };
    let Some(strategy) = job.object("deletionStrategy") else {
        return;
    };
    let path = path.key("deletionStrategy");
    // KubeRay refuses it in the older fields and in the rules (`validateLegacyDeletionPolicies`,
    // `validateDeletionRules`).
    let older = ["onSuccess", "onFailure"].into_iter();
    let older = older.filter_map(|key| Some((strategy.object(key)?, path.clone().key(key))));
    let rules = strategy.list("deletionRules").iter().enumerate();
    let rules = rules.filter_map(|(index, rule)| {
        let path = path.clone().key("deletionRules").index(index);
        Some((rule.as_object()?, path))
    });
    for (step, path) in older.chain(rules) {
        if step.text("policy") == Some(POLICY) {
            let finding = RULE.finding(
                path.key("policy"),
                format!("{POLICY} is not possible with autoscaling on"),
                "Write policy: DeleteCluster; or DeleteNone, because the autoscaler removes idle \
                 workers by itself; or set enableInTreeAutoscaling: false.",
            );
            findings.push(finding.valued(POLICY));
        }
    }
}
