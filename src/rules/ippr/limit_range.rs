//! RF117: a cap that the namespace does not allow.

use crate::facts::{DEFAULT_NAMESPACE, Facts, LimitRange, ResourceQuota};
use crate::finding::{Finding, RuleId, shown_text};
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::ippr::GroupCaps;
use crate::ray::pod_size::{BesideRay, gap};
use crate::ray::{Cluster, Container, Group, Resource};
use crate::rules::{Findings, OwnMode, Rule, Subject};

/// RF117
pub static RULE: Rule = Rule {
    id: RuleId(117),
    name: "ippr-limit-range",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a cap in `ray.io/ippr` that a LimitRange or ResourceQuota does not allow",
    what: "Compares the caps of every listed group with the LimitRanges (maximum per container and \
           per pod) and the ResourceQuotas of the namespace, for one pod with all its containers; \
           what is used already is not counted, and quotas for only some pods (scopes) are passed \
           over. Silent where they are not known.",
    why: "The API server refuses the resize to this cap with 403, and Ray then stops scaling the \
          whole cluster.",
    bad: r#"
# where a LimitRange allows containers 4 CPUs
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"8","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
"#,
    good: r#"
# where a LimitRange allows containers 4 CPUs
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
"#,
    without: "Kubernetes checks a resize against LimitRanges and ResourceQuotas like a new pod \
              (Kubernetes, admission plugins LimitRanger and ResourceQuota); Ray does not catch the \
              refusal, and every round of the autoscaler ends there (Ray, KubeRay IPPR provider, \
              `do_ippr_requests`).",
    since: "0.1.0",
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let rooms = Allowed::of(subject.facts, namespace);
    let Some(cluster) = subject.autoscaled().filter(|_| !rooms.is_empty()) else {
        return;
    };
    for (group, caps) in subject.resized_groups() {
        let Some(container) = group.ray_container() else {
            continue;
        };
        for resource in Resource::ALL {
            let Some(cap) = caps.amount(resource) else {
                continue;
            };
            let room = rooms.least(cluster, group, &container, resource);
            if let Some(room) = room.filter(|room| room.cap < cap) {
                findings.add(finding(caps, resource, cap, &room));
            }
        }
    }
}

/// What the namespace allows.
struct Allowed<'a> {
    ranges: &'a [LimitRange],
    quotas: &'a [ResourceQuota],
}

/// The highest cap that one of the objects allows.
struct Room {
    cap: Quantity,
    /// The object, for people.
    by: String,
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

    /// The lowest of all highest caps.
    fn least(
        &self,
        cluster: &Cluster<'_>,
        group: &Group<'_>,
        container: &Container<'_>,
        resource: Resource,
    ) -> Option<Room> {
        let beside = BesideRay::of(cluster, group, resource);
        let ranges = self
            .ranges
            .iter()
            .flat_map(|range| by_range(range, beside, resource));
        let quotas = self
            .quotas
            .iter()
            .filter(|quota| !quota.is_scoped)
            .flat_map(|quota| by_quota(quota, beside, container, resource));
        ranges.chain(quotas).min_by_key(|room| room.cap)
    }
}

fn by_range(range: &LimitRange, beside: BesideRay, resource: Resource) -> Vec<Room> {
    let room = |max: Option<Quantity>, beside, what: &str| {
        let max = max?;
        Some(Room {
            cap: max.checked_sub(beside)?,
            by: format!(
                "LimitRange {} allows a {what} {}",
                shown_text(&range.name),
                resource.show(max)
            ),
        })
    };
    let container = room(
        range.container_max.of(resource),
        Quantity::ZERO,
        "container",
    );
    let pod = room(range.pod_max.of(resource), beside.limits, "pod");
    container.into_iter().chain(pod).collect()
}

fn by_quota(
    quota: &ResourceQuota,
    beside: BesideRay,
    container: &Container<'_>,
    resource: Resource,
) -> Vec<Room> {
    let room = |hard: Option<Quantity>, beside, above, what: &str| {
        let hard = hard?;
        Some(Room {
            cap: hard.checked_sub(beside)?.checked_add(above)?,
            by: format!(
                "ResourceQuota {} allows all pods together {what} of {}",
                shown_text(&quota.name),
                resource.show(hard)
            ),
        })
    };
    let gap = gap(container, resource);
    let limits = quota.limits.of(resource);
    let limits = room(limits, beside.limits, Quantity::ZERO, "limits");
    let requests = quota.requests.of(resource);
    let requests = room(requests, beside.requests, gap, "requests");
    limits.into_iter().chain(requests).collect()
}

fn finding(caps: &GroupCaps, resource: Resource, cap: Quantity, room: &Room) -> Finding {
    let cap = resource.show(cap);
    let fix = if room.cap.is_negative() || room.cap.is_zero() {
        "Take the group out of the annotation, or have the limit raised.".to_owned()
    } else {
        let most = resource.show_at_most(room.cap);
        format!("Write {most:?} or less, or have the limit raised.")
    };
    let problem = format!("{cap} is more than this namespace allows: {}", room.by);
    RULE.finding(caps.key_path(resource.cap_key()), problem, fix)
        .valued(cap)
}
