//! RF117: a resize limit that the namespace does not allow.

use crate::facts::{DEFAULT_NAMESPACE, Facts, LimitRange, ResourceQuota};
use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::pod_size::BesideRay;
use crate::ray::{Cluster, Container, Group, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
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
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("A CEL expression cannot read LimitRanges and ResourceQuotas.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let allowed = Allowed::of(subject.facts, namespace);
    let Some(cluster) = subject.autoscaled().filter(|_| !allowed.is_empty()) else {
        return;
    };
    for (group, resize_limits) in subject.resized_groups() {
        let Some(container) = group.ray_container() else {
            continue;
        };
        for resource in Resource::ALL {
            let Some(resize_limit) = resize_limits.amount(resource) else {
                continue;
            };
            let highest = allowed.least(cluster, group, &container, resource);
            if let Some(highest) = highest.filter(|highest| highest.resize_limit < resize_limit) {
                findings.add(finding(resize_limits, resource, resize_limit, &highest));
            }
        }
    }
}

/// The limits of the namespace.
struct Allowed<'a> {
    ranges: &'a [LimitRange],
    quotas: &'a [ResourceQuota],
}

/// The highest resize limit that one limit of the namespace allows.
struct HighestLimit<'a> {
    resize_limit: Quantity,
    /// The name of the object.
    name: &'a str,
    limit: Limit,
    /// The amount of the limit.
    amount: Quantity,
    /// The part of it that the pod's other containers take.
    beside: Quantity,
}

/// The kinds of limits.
#[derive(Clone, Copy)]
enum Limit {
    Container,
    Pod,
    AllLimits,
    AllRequests,
}

impl<'a> Allowed<'a> {
    fn of(facts: &'a Facts, namespace: &str) -> Self {
        Self {
            ranges: facts.limit_ranges_in(namespace),
            quotas: facts.resource_quotas_in(namespace),
        }
    }

    fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.quotas.is_empty()
    }

    /// The lowest of all highest resize limits.
    fn least(
        &self,
        cluster: &Cluster<'_>,
        group: &Group<'_>,
        container: &Container<'_>,
        resource: Resource,
    ) -> Option<HighestLimit<'a>> {
        let beside = BesideRay::of(cluster, group, resource);
        let ranges = self.ranges.iter();
        let ranges = ranges.flat_map(|range| by_range(range, beside, resource));
        // A quota with scopes counts some pods only, and perhaps none of these.
        let quotas = self.quotas.iter().filter(|quota| !quota.is_scoped);
        let quotas = quotas.flat_map(|quota| by_quota(quota, beside, container, resource));
        let allowed = ranges.chain(quotas).flatten();
        allowed.min_by_key(|highest| highest.resize_limit)
    }
}

fn by_range(
    range: &LimitRange,
    beside: BesideRay,
    resource: Resource,
) -> [Option<HighestLimit<'_>>; 2] {
    let highest = |amount: Option<Quantity>, beside, limit| {
        Some(HighestLimit {
            resize_limit: amount?.checked_sub(beside)?,
            name: &range.name,
            limit,
            amount: amount?,
            beside,
        })
    };
    [
        highest(
            range.container_max.get(resource.name()),
            Quantity::ZERO,
            Limit::Container,
        ),
        highest(
            range.pod_max.get(resource.name()),
            beside.limits,
            Limit::Pod,
        ),
    ]
}

fn by_quota<'a>(
    quota: &'a ResourceQuota,
    beside: BesideRay,
    container: &Container<'_>,
    resource: Resource,
) -> [Option<HighestLimit<'a>>; 2] {
    let highest = |amount: Option<Quantity>, beside, gap, limit| {
        Some(HighestLimit {
            resize_limit: amount?.checked_sub(beside)?.checked_add(gap)?,
            name: quota.name.as_str(),
            limit,
            amount: amount?,
            beside,
        })
    };
    // A quota for requests leaves room for the gap between limit and request, which a resize keeps.
    let gap = container.gap(resource);
    let (limits, requests) = (
        quota.limits.get(resource.name()),
        quota.requests.get(resource.name()),
    );
    [
        highest(limits, beside.limits, Quantity::ZERO, Limit::AllLimits),
        highest(requests, beside.requests, gap, Limit::AllRequests),
    ]
}

impl HighestLimit<'_> {
    /// The limit with its object, for people.
    fn describe(&self, resource: Resource) -> String {
        let (name, amount) = (shown_text(self.name), resource.say(self.amount));
        let says = match self.limit {
            Limit::Container => format!("LimitRange {name} allows a container {amount}"),
            Limit::Pod => format!("LimitRange {name} allows a pod {amount}"),
            Limit::AllLimits => {
                format!("ResourceQuota {name} allows all pods together limits of {amount}")
            }
            Limit::AllRequests => {
                format!("ResourceQuota {name} allows all pods together requests of {amount}")
            }
        };
        if self.beside.is_zero() {
            return says;
        }
        let beside = resource.say(self.beside);
        format!("{says}, of which the pod's other containers take {beside}")
    }
}

fn finding(
    resize_limits: &GroupResizeLimits,
    resource: Resource,
    resize_limit: Quantity,
    highest: &HighestLimit<'_>,
) -> Finding {
    let resize_limit = resource.say(resize_limit);
    let fix = if highest.resize_limit.is_negative() || highest.resize_limit.is_zero() {
        "Remove the group from the annotation, or have the limit raised.".to_owned()
    } else {
        let most = resource.show_at_most(highest.resize_limit);
        format!("Write {most:?} or less, or have the limit raised.")
    };
    let problem = format!(
        "{resize_limit} is more than this namespace allows: {}",
        highest.describe(resource)
    );
    RULE.finding(resize_limits.key_path(resource.limit_key()), problem, fix)
        .valued(resize_limit)
}
