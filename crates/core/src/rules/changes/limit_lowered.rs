//! RF303: a resize limit below the present size of a running pod.

use super::live_change::{LiveChange, pods};
use crate::facts::RayPod;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(303),
    name: "resize-limit-lowered",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A resize limit in `ray.io/ippr` is lowered below the current size of a running pod",
    page: include_str!("limit_lowered.md"),
    why: "The pod stays above the limit: it is never shrunk below what it uses, and it does not grow \
          either.",
    cel: NO_PODS,
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (Some(_), Some(old)) = (LiveChange::of(subject), subject.old) else {
        return;
    };
    for (group, resize_limits) in subject.resized_groups() {
        let Some(old_limits) = group.name.and_then(|name| old.ippr.resize_limits(name)) else {
            continue;
        };
        for resource in Resource::ALL {
            let (Some(limit), Some(was)) =
                (resize_limits.amount(resource), old_limits.amount(resource))
            else {
                continue;
            };
            let size = |pod: &RayPod| pod.amounts.get(resource.name());
            let of_group = pods(subject).filter(|pod| Some(pod.group.as_str()) == group.name);
            let Some(largest) = of_group.max_by_key(|pod| size(pod)) else {
                continue;
            };
            // Ray takes the new resize limit as the maximum of the pod, and plans with less than the pod has.
            let Some(has) = size(largest).filter(|has| limit < was && limit < *has) else {
                continue;
            };
            let (limit, has_shown) = (resource.say(limit), resource.say(has));
            let problem = format!(
                "{limit} is below what pod {} has now: {has_shown}",
                shown_text(&largest.name)
            );
            let fix = format!(
                "Write {:?} or more, or replace the pod when the cluster tolerates that.",
                resource.show(has)
            );
            let path = resize_limits.key_path(resource.limit_key());
            findings.push(RULE.finding(path, problem, fix).valued(limit));
        }
    }
}
