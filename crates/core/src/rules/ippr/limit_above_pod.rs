//! RF118: a resize limit that the pod as a whole does not allow.

use crate::ray::pod_size::{PodLevelAmount, PodLevelBound};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(118),
    name: "ippr-limit-above-pod",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a resize limit in `ray.io/ippr` above what `template.spec.resources` allows",
    page: include_str!("limit_above_pod.md"),
    why: "The API server refuses the resize to this resize limit with 422, and Ray then stops \
          scaling the whole cluster.",
    cel: Cel::NotCovered(
        "The rule adds up the requests of all containers, sidecars and the autoscaler's container.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let mode = subject.object.reconcile_mode();
    let limits = subject.resized_groups();
    let limits =
        limits.flat_map(|(group, limits)| Resource::ALL.map(|resource| (group, limits, resource)));
    for (group, resize_limits, resource) in limits {
        let bound = PodLevelBound::of(cluster, group, resource, mode);
        let pair = resize_limits.amount(resource).zip(bound);
        let Some((limit, bound)) = pair.filter(|(limit, bound)| *limit > bound.highest) else {
            continue;
        };
        let (limit, amount) = (resource.say(limit), resource.say(bound.amount));
        let mut allows = match bound.by {
            PodLevelAmount::Limit => format!("the pod as a whole has a limit of {amount}"),
            PodLevelAmount::Request => format!("the pod as a whole has a request of {amount}"),
            PodLevelAmount::FilledIn => format!(
                "the pod as a whole has no request, so the API server fills in the {amount} with \
                 which its containers start"
            ),
        };
        if !bound.beside.is_zero() {
            let beside = resource.say(bound.beside);
            allows = format!("{allows}, of which its other containers take {beside}");
        }
        let is_nothing = bound.highest.is_negative() || bound.highest.is_zero();
        // A resize of a container leaves the resources of its pod as they are, and Kubernetes checks it against them
        // as it does a new pod (`validatePodResourceConsistency`).
        let fix = if bound.by == PodLevelAmount::FilledIn {
            let request = resource.name();
            format!("Write a template.spec.resources.requests.{request} that suffices for it.")
        } else if is_nothing {
            "Raise template.spec.resources, or remove the group from the annotation.".to_owned()
        } else {
            let most = resource.show_at_most(bound.highest);
            format!("Write {most:?} or less, or raise template.spec.resources.")
        };
        let path = resize_limits.key_path(resource.limit_key());
        let problem = format!("{limit} is more than the pod allows: {allows}");
        findings.push(RULE.finding(path, problem, fix).valued(limit));
    }
}
