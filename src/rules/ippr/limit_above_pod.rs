//! RF118: a resize limit that the pod as a whole does not allow.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::Resource;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::pod_size::{PodLevelAmount, PodLevelBound};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF118
pub static RULE: Rule = Rule {
    id: RuleId(118),
    name: "ippr-limit-above-pod",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a resize limit in `ray.io/ippr` above what `template.spec.resources` allows",
    page: RulePage(include_str!("limit_above_pod.md")),
    why: "The API server refuses the resize to this resize limit with 422, and Ray then stops \
          scaling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered(
    "The rule adds up the requests of all containers, sidecars and the autoscaler's container.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let mode = subject.reconcile_mode();
    for (group, resize_limits) in subject.resized_groups() {
        for resource in Resource::ALL {
            let bound = PodLevelBound::of(cluster, group, resource, mode);
            let pair = resize_limits.amount(resource).zip(bound);
            if let Some((limit, bound)) = pair.filter(|(limit, bound)| *limit > bound.highest) {
                findings.add(finding(resize_limits, resource, limit, bound));
            }
        }
    }
}

fn finding(
    resize_limits: &GroupResizeLimits,
    resource: Resource,
    limit: Quantity,
    bound: PodLevelBound,
) -> Finding {
    let (limit, amount) = (resource.say(limit), resource.say(bound.amount));
    let mut allows = match bound.by {
        PodLevelAmount::Limit => format!("the pod as a whole has a limit of {amount}"),
        PodLevelAmount::Request => format!("the pod as a whole has a request of {amount}"),
        PodLevelAmount::FilledIn => format!(
            "the pod as a whole has no request, so the API server fills in the {amount} with which its \
             containers start"
        ),
    };
    if !bound.beside.is_zero() {
        let beside = resource.say(bound.beside);
        allows = format!("{allows}, of which its other containers take {beside}");
    }
    let is_nothing = bound.highest.is_negative() || bound.highest.is_zero();
    let fix = if bound.by == PodLevelAmount::FilledIn {
        let request = resource.name();
        format!("Write a template.spec.resources.requests.{request} that suffices for it.")
    } else if is_nothing {
        "Raise template.spec.resources, or remove the group from the annotation.".to_owned()
    } else {
        let most = resource.show_at_most(bound.highest);
        format!("Write {most:?} or less, or raise template.spec.resources.")
    };
    RULE.finding(
        resize_limits.key_path(resource.limit_key()),
        format!("{limit} is more than the pod allows: {allows}"),
        fix,
    )
    .valued(limit)
}
