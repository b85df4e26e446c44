//! RF117: a resize limit that the namespace does not allow.

use crate::facts::DEFAULT_NAMESPACE;
use crate::quantity::Quantity;
use crate::ray::Resource;
use crate::ray::pod_size::BesideRay;
use crate::rules::{Cel, Finding, Mode, OwnMode, Rule, RuleId, RulePage, Subject};
use crate::text::shown_text;

/// RF117
pub static RULE: Rule = Rule {
    id: RuleId(117),
    name: "ippr-limit-range",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a resize limit in `ray.io/ippr` that a LimitRange or ResourceQuota does not allow",
    page: RulePage(include_str!("limit_range.md")),
    why: "The API server refuses the resize to this resize limit with 403, and Ray then stops \
          scaling the whole cluster.",
    cel: Cel::NotCovered("A CEL expression cannot read LimitRanges and ResourceQuotas."),
    check,
};

/// A limit of the namespace on one resource.
struct NamespaceLimit<'a> {
    /// The object that sets it.
    object: (&'static str, &'a str),
    /// The subject of the limit, as part of a sentence.
    of: &'static str,
    amount: Option<Quantity>,
    /// The part of it that the pod's other containers take.
    beside: Quantity,
    /// The room between the limit and the request of the ray container, which a resize keeps.
    gap: Quantity,
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let ranges = subject.facts.limit_ranges_in(namespace);
    let quotas = subject.facts.resource_quotas_in(namespace);
    let has_limits = !ranges.is_empty() || !quotas.is_empty();
    let Some(cluster) = subject.autoscaled().filter(|_| has_limits) else {
        return;
    };
    let asked = subject.resized_groups().flat_map(|(group, limits)| {
        Resource::ALL.map(|resource| (group, limits, resource, limits.amount(resource)))
    });
    for (group, resize_limits, resource, amount) in asked {
        let (Some(container), Some(resize_limit)) = (group.ray_container, amount) else {
            continue;
        };
        let beside = BesideRay::of(cluster, group, resource);
        let limit = |object, of, amount, beside, gap| NamespaceLimit {
            object,
            of,
            amount,
            beside,
            gap,
        };
        let none = Quantity::ZERO;
        let of_ranges = ranges.iter().flat_map(|range| {
            let object = ("LimitRange", range.name.as_str());
            let (container, pod) = (
                range.container_max.get(resource.name()),
                range.pod_max.get(resource.name()),
            );
            [
                limit(object, "a container", container, none, none),
                limit(object, "a pod", pod, beside.limits, none),
            ]
        });
        // A quota with scopes counts some pods only, and perhaps none of these.
        let of_quotas = quotas.iter().filter(|quota| !quota.is_scoped);
        let of_quotas = of_quotas.flat_map(|quota| {
            let object = ("ResourceQuota", quota.name.as_str());
            let (limits, requests) = (
                quota.limits.get(resource.name()),
                quota.requests.get(resource.name()),
            );
            let gap = container.gap(resource);
            [
                limit(
                    object,
                    "all pods together limits of",
                    limits,
                    beside.limits,
                    none,
                ),
                limit(
                    object,
                    "all pods together requests of",
                    requests,
                    beside.requests,
                    gap,
                ),
            ]
        });
        // The highest resize limit that each of them allows, of which the least holds.
        let allowed = of_ranges.chain(of_quotas).filter_map(|limit| {
            let most = limit.amount?.checked_sub(limit.beside)?;
            Some((most.checked_add(limit.gap)?, limit.amount?, limit))
        });
        let least = allowed.min_by_key(|(most, ..)| *most);
        let Some((most, amount, limit)) = least.filter(|(most, ..)| *most < resize_limit) else {
            continue;
        };
        let (kind, name) = (limit.object.0, shown_text(limit.object.1));
        let mut allows = format!("{kind} {name} allows {} {}", limit.of, resource.say(amount));
        if !limit.beside.is_zero() {
            let beside = resource.say(limit.beside);
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
        let finding = RULE.finding(resize_limits.key_path(resource.limit_key()), problem, fix);
        findings.push(finding.valued(resize_limit));
    }
}
