//! RF221: an idle timeout that KubeRay refuses or on which Ray fails.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::Cluster;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF221
pub static RULE: Rule = Rule {
    id: RuleId(221),
    name: "idle-timeout",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`idleTimeoutSeconds` is negative, or null where Ray fails on it",
    what: "Reports a negative `idleTimeoutSeconds` in `autoscalerOptions` and in every worker \
           group, with and without autoscaling. Where Ray's own autoscaler runs, reports also \
           `autoscalerOptions: null` and `autoscalerOptions.idleTimeoutSeconds: null`; the API \
           server drops nulls, so these matter to `rayfit check` and to clients that bypass it.",
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster.",
    bad: "
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {idleTimeoutSeconds: -1}
",
    good: "
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {idleTimeoutSeconds: 60}
",
    without: "KubeRay reports the spec as invalid in an Event and changes no pod until it is fixed \
              (KubeRay, `ValidateRayClusterSpec` and `validateWorkerGroupIdleTimeout`). Ray \
              divides the value by 60 without checking that there is one, so null raises TypeError \
              in every round and nothing scales (Ray, `autoscaling_config.py`, \
              `_derive_autoscaling_config_from_ray_cr`).",
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
    // Rayfit reads null as if the key were absent.
    if cluster.autoscaling() && !subject.reconcile_mode().is_ours() {
        report_null(cluster, findings);
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

fn report_null(cluster: &Cluster<'_>, findings: &mut Findings) {
    let options = cluster.spec.get("autoscalerOptions");
    let path = match options {
        Some(Value::Null) => cluster.path().key("autoscalerOptions"),
        Some(options) if options.get(KEY).is_some_and(Value::is_null) => cluster.option_path(KEY),
        _ => return,
    };
    findings.add(
        RULE.finding(
            path,
            "null is not the same as absent",
            format!("Remove the key, or write {KEY}: 60, Ray's own default."),
        )
        .because("Ray's autoscaler fails on it in every round, so nothing scales.")
        .valued("null"),
    );
}
