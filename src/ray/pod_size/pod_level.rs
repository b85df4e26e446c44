//! The room that the resources of a pod as a whole (`template.spec.resources`) leave its ray container to
//! grow: where a resize leaves them as they are, as Ray's does, and where it raises the pod's request along
//! with the container's, as Rayfit's does.

use super::BesideRay;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Fields, Group, Resource, object_at};

/// The most that a ray container may have within its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodLevelBound {
    /// The highest limit, or request where there is no limit, of the ray container.
    pub highest: Quantity,
    /// The amount of the pod that bounds it.
    pub by: PodLevelAmount,
    /// Its value.
    pub amount: Quantity,
    /// The part of it that the pod's other containers take.
    pub beside: Quantity,
}

/// An amount of a pod as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodLevelAmount {
    /// Its limit, which no container's limit may exceed, nor the pod's request.
    Limit,
    /// Its request, which the requests of all containers together may not exceed.
    Request,
    /// The request that the API server fills in where the template has a limit only: what the containers
    /// request at the start.
    FilledIn,
}

impl PodLevelBound {
    /// The bound of a group's ray container where a resize leaves the pod's own amounts as they are, if
    /// there are any. (Kubernetes, `validation.go`, `validatePodResourceConsistency`.)
    pub fn kept(cluster: &Cluster<'_>, group: &Group<'_>, resource: Resource) -> Option<Self> {
        let pod = PodLevel::of(cluster, group, resource)?;
        let by_limit = pod.limit.map(Self::by_limit);
        let by_request = match pod.request {
            Some(request) => pod.by_sum(PodLevelAmount::Request, request),
            None => {
                (pod.filled_in).and_then(|request| pod.by_sum(PodLevelAmount::FilledIn, request))
            }
        };
        let bounds = by_limit.into_iter().chain(by_request);
        bounds.min_by_key(|bound| bound.highest)
    }

    /// The bound of a group's ray container where a resize raises the pod's request as far as it must:
    /// only the pod's limit bounds it, which its request may not exceed either.
    pub fn raised(cluster: &Cluster<'_>, group: &Group<'_>, resource: Resource) -> Option<Self> {
        let pod = PodLevel::of(cluster, group, resource)?;
        let limit = pod.limit?;
        let by_request = pod.by_sum(PodLevelAmount::Limit, limit);
        let bounds = std::iter::once(Self::by_limit(limit)).chain(by_request);
        bounds.min_by_key(|bound| bound.highest)
    }

    fn by_limit(limit: Quantity) -> Self {
        Self {
            highest: limit,
            by: PodLevelAmount::Limit,
            amount: limit,
            beside: Quantity::ZERO,
        }
    }
}

/// The pod-level amounts of a group's template for one resource.
struct PodLevel {
    limit: Option<Quantity>,
    request: Option<Quantity>,
    /// The request that the API server fills in where there is none. (Kubernetes, `defaults.go`,
    /// `defaultPodRequests`.)
    filled_in: Option<Quantity>,
    /// The requests of the pod's other containers.
    beside: Quantity,
    /// The amount by which the ray container's limit is above its request.
    gap: Quantity,
}

impl PodLevel {
    fn of(cluster: &Cluster<'_>, group: &Group<'_>, resource: Resource) -> Option<Self> {
        let resources = object_at(group.pod_spec()?, "resources")?;
        let container = group.ray_container()?;
        let beside = BesideRay::of(cluster, group, resource).requests;
        let limits = object_at(resources, "limits");
        let own = (container.request(resource.name())).or_else(|| container.limit(resource.name()));
        let sum = own.and_then(|own| own.checked_add(beside));
        Some(Self {
            limit: amount(resources, "limits", resource),
            request: amount(resources, "requests", resource),
            filled_in: sum.filter(|_| limits.is_some_and(|limits| !limits.is_empty())),
            beside,
            gap: container.gap(resource),
        })
    }

    /// The bound where the requests of all containers together may not exceed `amount`.
    fn by_sum(&self, by: PodLevelAmount, amount: Quantity) -> Option<PodLevelBound> {
        let left = amount.checked_sub(self.beside)?;
        Some(PodLevelBound {
            highest: left.checked_add(self.gap)?,
            by,
            amount,
            beside: self.beside,
        })
    }
}

fn amount(resources: &Fields, kind: &str, resource: Resource) -> Option<Quantity> {
    let amounts = object_at(resources, kind)?;
    Quantity::from_json(amounts.get(resource.name())?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ray::Kind;

    /// The highest size where the pod's amounts are kept, and where its request is raised.
    fn highest(pod: &Value, resource: Resource) -> [Option<String>; 2] {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": {"resources": pod, "containers": [
            {"name": "ray", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1100m"}}},
            {"name": "logs", "resources": {"requests": {"cpu": "500m"}}},
        ]}}}]});
        let cluster = Cluster::parse(Kind::RayCluster, spec.as_object().unwrap());
        let group = cluster.groups().next().unwrap();
        [PodLevelBound::kept, PodLevelBound::raised].map(|bound| {
            let bound = bound(&cluster, group, resource)?;
            Some(resource.show(bound.highest))
        })
    }

    fn cpu(pod: &Value) -> [Option<String>; 2] {
        highest(pod, Resource::Cpu)
    }

    fn both(one: &str, other: &str) -> [Option<String>; 2] {
        [one, other].map(|text| Some(text.to_owned()))
    }

    #[test]
    fn the_tightest_amount_of_the_pod_counts() {
        assert_eq!(cpu(&json!({})), [None, None]);
        assert_eq!(
            cpu(&json!({"limits": {"cpu": "8"}, "requests": {"cpu": "4"}})),
            both("3600m", "7600m"),
            "the gap of 100m is kept, and the other container takes half a core"
        );
        let memory = highest(&json!({"limits": {"cpu": "4"}}), Resource::Memory);
        assert_eq!(memory, [None, None]);
    }

    #[test]
    fn a_request_that_the_api_server_fills_in_leaves_no_room_unless_it_is_raised() {
        assert_eq!(
            cpu(&json!({"limits": {"cpu": "4"}})),
            both("1100m", "3600m")
        );
    }

    #[test]
    fn a_request_that_is_raised_stays_within_the_limit() {
        let limit = json!({"limits": {"cpu": "4"}, "requests": {"cpu": "4"}});
        assert_eq!(cpu(&limit), both("3600m", "3600m"));
        assert_eq!(
            cpu(&json!({"requests": {"cpu": "4"}})),
            [Some("3600m".to_owned()), None],
            "a pod without a limit may have any request"
        );
    }
}
