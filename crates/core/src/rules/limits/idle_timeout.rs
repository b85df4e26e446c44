//! RF505: idle workers kept longer than a policy allows.

use super::extent::allowance;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(505),
    name: "idle-timeout-limit",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Idle workers are kept longer than a RayPolicy allows",
    page: include_str!("idle_timeout.md"),
    why: "Idle workers cost as much as busy ones.",
    cel: Cel::NotCovered("Limits are set by RayPolicies, which CEL does not see."),
    check,
};

const KEY: &str = "idleTimeoutSeconds";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let limit = subject.settings.limits.max_idle_timeout_seconds.as_ref();
    let (Some(limit), Some(cluster)) = (limit, subject.autoscaled()) else {
        return;
    };
    // A group's own timeout takes precedence over the general one, so each is compared by itself.
    let general = cluster.autoscaler_option(KEY).and_then(Json::as_i64);
    let general = general.map(|seconds| (seconds, cluster.option_path(KEY)));
    let groups = cluster.workers.iter();
    let of_groups = groups.filter_map(|group| Some((group.integer(KEY)?, group.path().key(KEY))));
    let most = limit.most.to_string();
    for (seconds, path) in general.into_iter().chain(of_groups) {
        if seconds > limit.most {
            let allowance = allowance(limit, &most);
            let problem = format!("{seconds} seconds is too long: {allowance}");
            let finding = RULE.finding(path, problem, format!("Write {most} or less."));
            let finding = finding.amounting("seconds", Quantity::from_units(seconds));
            let finding = finding.valued(seconds.to_string());
            findings.push(finding.mended_by(limit.most));
        }
    }
}
