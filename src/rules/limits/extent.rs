//! The most that a cluster and its pods may use, and the text for what is allowed.

use crate::facts::{DEFAULT_NAMESPACE, KubernetesVersion};
use crate::finding::Finding;
use crate::policy::Limit;
use crate::quantity::Quantity;
use crate::ray::pod_size::{ContainerBounds, PodMost, Unbounded};
use crate::ray::{Cluster, Group, Resource};
use crate::rules::{Rule, Subject};
use crate::text::shown_text;

/// The maximum number of pods of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// So many.
    AtMost(i64),
    /// The autoscaler may add as many as it likes.
    Unbounded,
}

impl Count {
    /// The count of a worker group: with autoscaling `maxReplicas`, else `replicas`; each of `numOfHosts`.
    pub(super) fn of(cluster: &Cluster<'_>, group: &Group<'_>) -> Self {
        if group.is_head() {
            return Self::AtMost(1);
        }
        let replicas = if cluster.autoscaling() {
            match group.integer("maxReplicas") {
                None => return Self::Unbounded,
                Some(max) => max,
            }
        } else {
            // KubeRay raises `replicas` to `minReplicas` (`GetWorkerGroupDesiredReplicas`).
            let least = group.integer("minReplicas").unwrap_or(0);
            group.integer("replicas").unwrap_or(1).max(least)
        };
        let hosts = group.integer("numOfHosts").filter(|hosts| *hosts > 0);
        Self::AtMost(replicas.max(0).saturating_mul(hosts.unwrap_or(1)))
    }

    /// The amount by which updates are compared.
    pub(super) fn amount(self) -> Quantity {
        match self {
            Self::AtMost(count) => Quantity::from_units(count),
            Self::Unbounded => UNLIMITED,
        }
    }

    /// The count of several groups together.
    pub(super) fn sum(counts: impl IntoIterator<Item = Self>) -> Self {
        counts
            .into_iter()
            .fold(Self::AtMost(0), |sum, count| match (sum, count) {
                (Self::AtMost(sum), Self::AtMost(count)) => Self::AtMost(sum.saturating_add(count)),
                _ => Self::Unbounded,
            })
    }
}

/// More than any amount: what is unlimited.
pub(super) const UNLIMITED: Quantity = Quantity::from_nanos(i128::MAX);

/// The first version in which a pod's own `resources` limit it by default.
const POD_LEVEL: KubernetesVersion = KubernetesVersion::new(1, 34);

/// The most that a pod of a group may use of a resource.
pub(super) fn most_of_pod(
    subject: &Subject<'_>,
    (cluster, group): (&Cluster<'_>, &Group<'_>),
    resource: Resource,
) -> PodMost {
    let object = subject.object;
    let resize_limits = group.name.and_then(|name| object.ippr.resize_limits(name));
    let namespace = object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let ranges = subject.facts.limit_ranges_in(namespace).iter();
    let bounds = ContainerBounds {
        default: ranges
            .filter_map(|range| range.container_default.get(resource.name()))
            .max(),
        pod_level: subject
            .facts
            .kubernetes
            // The pod's own limit is believed where the version is unknown: rules do not guess.
            .is_none_or(|version| version >= POD_LEVEL),
    };
    let limit = resize_limits.and_then(|resize_limits| resize_limits.amount(resource));
    PodMost::of((cluster, group), resource, limit, bounds)
}

/// A container of a group that may take more than any limit allows, since it has none itself.
pub(super) fn without_limit(
    rule: &Rule,
    (group, missing): (&Group<'_>, &Unbounded),
    resource: Resource,
    (limit, of): (&Limit<Quantity>, &str),
) -> Finding {
    let most = resource.say(limit.most);
    let problem = format!(
        "{} in {} has no limit of {}, so it may take all that a node has, and {} for {of}",
        missing.title,
        group.title(),
        resource.title(),
        allowance(limit, &most)
    );
    let fix = format!("Set this limit, above 0, so that {of} has {most} or less.");
    rule.finding(missing.path.clone(), problem, fix)
}

/// `RayPolicy "team-a" allows 8 CPUs`
pub(super) fn allowance<T>(limit: &Limit<T>, most: &str) -> String {
    format!("RayPolicy {} allows {most}", shown_text(&limit.policy))
}

/// The sum with all pods of a group; `None` if it is unlimited.
pub(super) fn plus(sum: Quantity, pod: Quantity, count: Count) -> Option<Quantity> {
    match count {
        // First, because pods without any of it stay within every limit even in a group without
        // maxReplicas.
        _ if pod.is_zero() => Some(sum),
        Count::Unbounded => None,
        Count::AtMost(count) => pod.checked_mul(count).and_then(|all| sum.checked_add(all)),
    }
}

/// The amount that a cluster may grow to, in words, if that is more than `most`; without a total it
/// is unlimited.
pub(super) fn beyond(
    total: Option<Quantity>,
    most: Quantity,
    resource: Resource,
) -> Option<String> {
    match total {
        Some(total) if total <= most => None,
        Some(total) => Some(format!("{} in all", resource.say(total))),
        None => Some(format!(
            "any amount of {}, because a group has no maxReplicas",
            resource.title()
        )),
    }
}
