//! RF117: a resize limit that the namespace does not allow.

use crate::facts::DEFAULT_NAMESPACE;
use crate::ray::pod_size::BesideRay;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(117),
    name: "ippr-limit-range",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a resize limit in `ray.io/ippr` that a LimitRange or ResourceQuota does not allow",
    page: include_str!("limit_range.md"),
    why: "The API server refuses the resize to this resize limit with 403, and Ray then stops \
          scaling the whole cluster.",
    cel: Cel::NotCovered("A CEL expression cannot read LimitRanges and ResourceQuotas."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let ranges = subject.facts.limit_ranges_in(namespace);
    let quotas = subject.facts.resource_quotas_in(namespace);
    let has_limits = !ranges.is_empty() || !quotas.is_empty();
    let Some(cluster) = subject.autoscaled().filter(|_| has_limits) else {
        return;
    };
    let places = subject
        .resized_groups()
        .flat_map(|(group, limits)| Resource::ALL.map(|resource| (group, limits, resource)));
    for (group, limits, resource) in places {
        let (Some(container), Some(resize_limit)) = (group.ray_container, limits.amount(resource))
        else {
            continue;
        };
        let (name, beside) = (resource.name(), BesideRay::of(cluster, group, resource));
        // Kubernetes checks a resize as it does a new pod (admission plugins LimitRanger and ResourceQuota), and Ray
        // does not catch the refusal.
        let (none, gap) = (Quantity::ZERO, container.gap(resource));
        // Each limit with its object, its subject as part of a sentence, the part of it that the pod's other
        // containers take, and the room between limit and request of the ray container, which a resize keeps.
        let of_ranges = ranges.iter().flat_map(|range| {
            let object = ("LimitRange", &range.name);
            let (container, pod) = (range.container_max.get(name), range.pod_max.get(name));
            [
                (object, "a container", container, none, none),
                (object, "a pod", pod, beside.limits, none),
            ]
        });
        // A quota with scopes counts some pods only, and perhaps none of these.
        let of_quotas = quotas.iter().filter(|quota| !quota.is_scoped);
        let of_quotas = of_quotas.flat_map(|quota| {
            let object = ("ResourceQuota", &quota.name);
            let (limits, requests) = (quota.limits.get(name), quota.requests.get(name));
            let (of_limits, of_requests) = (
                "all pods together limits of",
                "all pods together requests of",
            );
            [
                (object, of_limits, limits, beside.limits, none),
                (object, of_requests, requests, beside.requests, gap),
            ]
        });
        // The highest resize limit that each of them allows, of which the least holds.
        let allowed = of_ranges.chain(of_quotas);
        let allowed = allowed.filter_map(|(object, of, amount, beside, gap)| {
            let most = amount?.checked_sub(beside)?.checked_add(gap)?;
            Some((most, object, of, amount?, beside))
        });
        let least = allowed.min_by_key(|(most, ..)| *most);
        let Some((most, (kind, name), of, amount, beside)) =
            least.filter(|(most, ..)| *most < resize_limit)
        else {
            continue;
        };
        let (name, amount) = (shown_text(name), resource.say(amount));
        let mut allows = format!("{kind} {name} allows {of} {amount}");
        if !beside.is_zero() {
            let beside = resource.say(beside);
            allows = format!("{allows}, of which the pod's other containers take {beside}");
        }
        let fix = if most.is_negative() || most.is_zero() {
            "Remove the group from the annotation, or have the limit raised.".to_owned()
        } else {
            let most = resource.show_at_most(most);
            format!("Write {most:?} or less, or have the limit raised.")
        };
        let resize_limit = resource.say(resize_limit);
        let problem = format!("{resize_limit} is more than this namespace allows: {allows}");
        let finding = RULE.finding(limits.key_path(resource.limit_key()), problem, fix);
        findings.push(finding.valued(resize_limit));
    }
}
