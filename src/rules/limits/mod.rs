//! RF5xx: limits, judged only where a RayPolicy sets them.

pub mod cluster_size;
pub mod gpus_per_cluster;
pub mod idle_timeout;
pub mod pod_size;
pub mod workers_per_cluster;
pub mod workers_per_group;

use crate::finding::shown_text;
use crate::policy::Limit;
use crate::quantity::Quantity;
use crate::ray::pod_size::BesideRay;
use crate::ray::{Cluster, Group, Ippr, Resource};

/// How many pods a group may come to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// So many.
    AtMost(i64),
    /// The autoscaler may add as many as it likes.
    Unbounded,
}

impl Count {
    /// Of a worker group: with autoscaling `maxReplicas`, else `replicas`; each of `numOfHosts`.
    fn of(cluster: &Cluster<'_>, group: &Group<'_>) -> Self {
        if group.is_head() {
            return Self::AtMost(1);
        }
        let replicas = if cluster.autoscaling() {
            match group.integer("maxReplicas") {
                None => return Self::Unbounded,
                Some(max) => max,
            }
        } else {
            let least = group.integer("minReplicas").unwrap_or(0);
            group.integer("replicas").unwrap_or(1).max(least)
        };
        let hosts = group.integer("numOfHosts").filter(|hosts| *hosts > 0);
        Self::AtMost(replicas.max(0).saturating_mul(hosts.unwrap_or(1)))
    }

    /// Of several groups together.
    fn sum(counts: impl IntoIterator<Item = Self>) -> Self {
        counts
            .into_iter()
            .fold(Self::AtMost(0), |sum, count| match (sum, count) {
                (Self::AtMost(sum), Self::AtMost(count)) => Self::AtMost(sum.saturating_add(count)),
                _ => Self::Unbounded,
            })
    }
}

/// What a pod of a group may come to have of a resource: its ray container, at its cap if it has
/// one, and its other containers. What is given nowhere counts as nothing.
fn of_pod(cluster: &Cluster<'_>, group: &Group<'_>, ippr: &Ippr, resource: Resource) -> Quantity {
    let container = group.ray_container();
    let size = container.and_then(|container| {
        let name = resource.name();
        container.limit(name).or_else(|| container.request(name))
    });
    let caps = group.name.and_then(|name| ippr.caps(name));
    let cap = caps.and_then(|caps| caps.amount(resource));
    let ray = size.into_iter().chain(cap).max().unwrap_or_default();
    let beside = BesideRay::of(cluster, group, resource);
    let beside = beside.requests.max(beside.limits);
    ray.checked_add(beside).unwrap_or(ray)
}

/// `RayPolicy "team-a" allows 8 CPUs`
fn allowance<T>(limit: &Limit<T>, most: &str) -> String {
    format!("RayPolicy {} allows {most}", shown_text(&limit.policy))
}
