//! RF221: an idle timeout that KubeRay refuses.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF221
pub static RULE: Rule = Rule {
    id: RuleId(221),
    name: "idle-timeout",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`idleTimeoutSeconds` is negative",
    page: RulePage(include_str!("idle_timeout.md")),
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[
    Check {
        each: Each::Object,
        mode: Mode::Enforce,
        faults: r#"s.options.?idleTimeoutSeconds.orValue(0) < 0 ? [s.path + '.autoscalerOptions.idleTimeoutSeconds ' + string(s.options.idleTimeoutSeconds) + ' is negative'] : []"#,
        fix: "Write the seconds after which an idle worker is removed, for example 60.",
    },
    Check {
        each: Each::Worker,
        mode: Mode::Enforce,
        faults: r#"g.spec.?idleTimeoutSeconds.orValue(0) < 0 ? ['.idleTimeoutSeconds ' + string(g.spec.idleTimeoutSeconds) + ' is negative'] : []"#,
        fix: "Write the seconds after which an idle worker is removed, for example 60.",
    },
]);

const KEY: &str = "idleTimeoutSeconds";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    if let Some(value) = cluster.autoscaler_option(KEY) {
        report_negative(value, || cluster.option_path(KEY), findings);
    }
    for group in &cluster.workers {
        if let Some(value) = group.spec.get(KEY) {
            report_negative(value, || group.path().key(KEY), findings);
        }
    }
}

fn report_negative(value: &Value, path: impl Fn() -> FieldPath, findings: &mut Findings) {
    if value.as_f64().is_some_and(|seconds| seconds < 0.0) {
        findings.add(
            RULE.finding(
                path(),
                format!("{value} is negative"),
                "Write the seconds after which an idle worker is removed, for example 60; 0 \
                 removes it at once. No value means never; raise minReplicas instead.",
            )
            .valued(shown(value)),
        );
    }
}
