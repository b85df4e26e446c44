//! RF119: a memory monitor that does not know that its pod has grown.

use crate::ray::cluster::RaySource;
use crate::ray::container::MEMORY_MONITOR;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(119),
    name: "ippr-memory-monitor",
    mode: OwnMode::Always(Mode::Audit),
    summary: "pods whose memory may grow, with a Ray whose memory monitor does not see that",
    page: include_str!("memory_monitor.md"),
    why: "Ray kills work in a pod once 95 % of the memory are in use with which the pod started, \
          however large it has become.",
    cel: Cel::NotCovered("The rule reads the environment of each group's container."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let version = subject.autoscaled().and_then(RaySource::of);
    let version = version.map(|source| source.version);
    let Some(version) = version.filter(|version| *version < since::MONITOR_FOLLOWS_POD) else {
        return;
    };
    for (group, resize_limits) in subject.resized_groups() {
        let Some(container) = group.ray_container else {
            continue;
        };
        let most = resize_limits.amount(Resource::Memory);
        // The raylet reads the limit of its memory monitor once, when it starts (Ray, `memory_monitor_utils.cc`).
        let pair = most.zip(container.limit(Resource::Memory.name()));
        let may_grow = pair.is_some_and(|(most, limit)| most > limit);
        // An empty value is one from elsewhere. Ray reads a whole number, and 0 switches the monitor off.
        let is_on = container
            .env(MEMORY_MONITOR)
            .is_none_or(|every_ms| every_ms.trim().parse::<u64>() != Ok(0) && !every_ms.is_empty());
        if may_grow && is_on {
            findings.push(RULE.finding(
                resize_limits.key_path(Resource::Memory.limit_key()),
                format!(
                    "the memory of these pods may grow, and the memory monitor of Ray {version} goes by that \
                     with which they start"
                ),
                format!(
                    "Write {{name: {MEMORY_MONITOR}, value: \"0\"}} into the environment of the group's ray \
                     container, or a max-memory that is what the pods start with."
                ),
            ));
        }
    }
}
