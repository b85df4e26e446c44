//! RF301: `maxReplicas` below the workers that run.

use super::live_change::{LiveChange, pods};
use crate::rules::prelude::*;
use crate::rules::shared::hosts;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(301),
    name: "max-lowered",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`maxReplicas` is lowered below the workers that run",
    page: include_str!("max_lowered.md"),
    why: "The workers above the maximum are stopped at once, and the tasks on them fail.",
    cel: NO_PODS,
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(change) = LiveChange::of(subject) else {
        return;
    };
    for group in &change.new.workers {
        let Some(name) = group.name else { continue };
        let Some(max) = group.integer("maxReplicas").filter(|max| *max >= 0) else {
            continue;
        };
        let old_max = change.old.group(name).map(|old| old.integer("maxReplicas"));
        let is_lowered = old_max.is_some_and(|old| old.is_none_or(|old| max < old));
        let hosts = hosts(group);
        let running = pods(subject).filter(|pod| pod.group == name).count();
        let running = i64::try_from(running).unwrap_or(i64::MAX);
        // Ray stops the raylets above the maximum without waiting for their work (`_enforce_max_workers_per_type`). A
        // replica has as many pods as hosts.
        let excess = running.saturating_sub(max.saturating_mul(hosts));
        if !is_lowered || excess <= 0 {
            continue;
        }
        let problem =
            format!("{max} is below the {running} workers of the group that run now, by {excess}");
        let fix = format!(
            "Write {} or more, or wait until the work on the others is done.",
            running.div_euclid(hosts) + i64::from(running % hosts != 0)
        );
        let finding = RULE.finding(group.path().key("maxReplicas"), problem, fix);
        let finding = finding.valued(max.to_string());
        findings.push(match subject.object.reconcile_mode() {
            ReconcileMode::Ray if change.new.autoscaling() => finding,
            ReconcileMode::Ray => finding
                .because("KubeRay deletes the workers above the maximum, even if they have work."),
            _ => finding.because(
                "Rayfit drains workers above the maximum, so they get no new work. It stops them \
                 after ten minutes, or at the time that a RayPolicy sets, and at once with \
                 strategy ray.",
            ),
        });
    }
}
