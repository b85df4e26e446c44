//! RF221: an idle timeout that KubeRay refuses.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(221),
    name: "idle-timeout",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`idleTimeoutSeconds` is negative",
    page: include_str!("idle_timeout.md"),
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster.",
    cel: Cel::Covered(&[
        Check {
            each: Each::Object,
            faults: r#"s.options.?idleTimeoutSeconds.orValue(0) < 0 ? [s.path + '.autoscalerOptions.idleTimeoutSeconds ' + string(s.options.idleTimeoutSeconds) + ' is negative'] : []"#,
            fix: "Write the seconds after which an idle worker is removed, for example 60.",
        },
        Check {
            each: Each::Worker,
            faults: r#"g.spec.?idleTimeoutSeconds.orValue(0) < 0 ? ['.idleTimeoutSeconds ' + string(g.spec.idleTimeoutSeconds) + ' is negative'] : []"#,
            fix: "Write the seconds after which an idle worker is removed, for example 60.",
        },
    ]),
    check,
};

const KEY: &str = "idleTimeoutSeconds";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    // KubeRay refuses a negative one at either place (`ValidateRayClusterSpec`, `validateWorkerGroupIdleTimeout`).
    let general = cluster.autoscaler_option(KEY);
    let general = general.map(|value| (value, cluster.option_path(KEY)));
    let of_groups = cluster.workers.iter();
    let of_groups =
        of_groups.filter_map(|group| Some((group.spec.get(KEY)?, group.path().key(KEY))));
    for (value, path) in general.into_iter().chain(of_groups) {
        if value.as_f64().is_some_and(|seconds| seconds < 0.0) {
            let finding = RULE.finding(
                path,
                format!("{value} is negative"),
                "Write the seconds after which an idle worker is removed, for example 60; 0 \
                 removes it at once. No value means never; raise minReplicas instead.",
            );
            findings.push(finding.valued(shown(value)));
        }
    }
}
