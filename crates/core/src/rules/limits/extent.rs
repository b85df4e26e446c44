//! The most that a cluster and its pods may use, and the text for what is allowed.

use crate::facts::{DEFAULT_NAMESPACE, KubernetesVersion};

use crate::policy::Limit;
use crate::quantity::Quantity;
use crate::ray::pod_size::{ContainerBounds, PodMost, Unbounded};
use crate::ray::{Cluster, Group, Resource};
use crate::rules::prelude::{Finding, Rule, Subject};
use crate::rules::shared::hosts;
use crate::text::shown_text;

/// The most pods of a group: of workers `maxReplicas` with autoscaling, else `replicas`, each of `numOfHosts`.
/// `None` if the autoscaler may add as many as it likes.
pub(super) fn most_pods(cluster: &Cluster<'_>, group: &Group<'_>) -> Option<i64> {
    if group.is_head() {
        return Some(1);
    }
    let replicas = if cluster.autoscaling() {
        group.integer("maxReplicas")?
    } else {
        // KubeRay raises `replicas` to `minReplicas` (`GetWorkerGroupDesiredReplicas`).
        let least = group.integer("minReplicas").unwrap_or(0);
        group.integer("replicas").unwrap_or(1).max(least)
    };
    Some(replicas.max(0).saturating_mul(hosts(group)))
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
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let ranges = subject.facts.limit_ranges_in(namespace).iter();
    let bounds = ContainerBounds {
        // Of several LimitRanges it is not determined which default a container gets, so the largest counts.
        default: ranges
            .filter_map(|range| range.container_default.get(resource.name()))
            .max(),
        pod_level: subject
            .facts
            .kubernetes
            // The pod's own limit is believed where the version is unknown: rules do not guess.
            .is_none_or(|version| version >= POD_LEVEL),
    };
    let limits = subject.resize_limits(group);
    let limit = limits.and_then(|limits| limits.amount(resource));
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
