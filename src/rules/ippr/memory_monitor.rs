//! RF119: a memory monitor that does not know that its pod has grown.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::ray::cluster::RaySource;
use crate::ray::container::MEMORY_MONITOR;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::since;
use crate::ray::{Container, RayVersion, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF119
pub static RULE: Rule = Rule {
    id: RuleId(119),
    name: "ippr-memory-monitor",
    mode: OwnMode::Always(Mode::Audit),
    summary: "pods whose memory may grow, with a Ray whose memory monitor does not see that",
    page: RulePage(include_str!("memory_monitor.md")),
    why: "Ray kills work in a pod once 95 % of the memory are in use with which the pod started, \
          however large it has become.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("The rule reads the environment of each group's container.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let version = RaySource::of(cluster).map(|source| source.version);
    let Some(version) = version.filter(|version| *version < since::MONITOR_FOLLOWS_POD) else {
        return;
    };
    for (group, resize_limits) in subject.resized_groups() {
        let container = group.ray_container();
        if container
            .is_some_and(|container| may_grow(&container, resize_limits) && is_on(&container))
        {
            findings.add(finding(resize_limits, version));
        }
    }
}

fn may_grow(container: &Container<'_>, resize_limits: &GroupResizeLimits) -> bool {
    let pair = resize_limits
        .amount(Resource::Memory)
        .zip(container.limit(Resource::Memory.name()));
    pair.is_some_and(|(most, limit)| most > limit)
}

/// Whether the memory monitor is on for certain.
fn is_on(container: &Container<'_>) -> bool {
    let every_ms = container.env(MEMORY_MONITOR);
    // An empty value is one from elsewhere. Ray reads a whole number.
    every_ms.is_none_or(|every_ms| every_ms.trim().parse::<u64>() != Ok(0) && !every_ms.is_empty())
}

fn finding(resize_limits: &GroupResizeLimits, version: RayVersion) -> Finding {
    RULE.finding(
        resize_limits.key_path(Resource::Memory.limit_key()),
        format!(
            "the memory of these pods may grow, and the memory monitor of Ray {version} goes by that \
             with which they start"
        ),
        format!(
            "Write {{name: {MEMORY_MONITOR}, value: \"0\"}} into the environment of the group's ray \
             container, or a max-memory that is what the pods start with."
        ),
    )
}
