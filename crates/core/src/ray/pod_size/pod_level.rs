//! The room that the resources of a pod as a whole (`template.spec.resources`) leave its ray container to
//! grow: where a resize leaves them as they are, as Ray's does, and where it raises the pod's request along
//! with the container's, as Rayfit's does.

use super::parts::BesideRay;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Container, Group, ReconcileMode, Resource};

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
    /// The bound of a group's ray container, if there is one. Ray leaves the pod's own amounts as they are.
    /// Rayfit raises the pod's request as far as it must: only the pod's limit bounds that, which its request
    /// may not exceed either. (Kubernetes, `validation.go`, `validatePodResourceConsistency`.)
    pub fn of(
        cluster: &Cluster<'_>,
        group: &Group<'_>,
        resource: Resource,
        mode: ReconcileMode,
    ) -> Option<Self> {
        let spec = group.pod_spec?;
        spec.object("resources")?;
        // The `resources` of a pod have the same form as those of a container.
        let pod = Container::new(0, spec);
        let container = group.ray_container?;
        let name = resource.name();
        let beside = BesideRay::of(cluster, group, resource).requests;
        // The requests of all containers together may not exceed the amount.
        let by_sum = |by, amount: Quantity| {
            let rest = amount.checked_sub(beside)?;
            Some(Self {
                highest: rest.checked_add(container.gap(resource))?,
                by,
                amount,
                beside,
            })
        };
        let limit = pod.limit(name);
        let by_limit = limit.map(|limit| Self {
            highest: limit,
            by: PodLevelAmount::Limit,
            amount: limit,
            beside: Quantity::ZERO,
        });
        let by_request = if mode.is_ours() {
            limit.and_then(|limit| by_sum(PodLevelAmount::Limit, limit))
        } else if let Some(request) = pod.request(name) {
            by_sum(PodLevelAmount::Request, request)
        } else if pod.limits.is_some_and(|limits| !limits.is_empty()) {
            // Kubernetes, `defaults.go`, `defaultPodRequests`.
            let request = container.request(name).or_else(|| container.limit(name));
            request
                .and_then(|request| by_sum(PodLevelAmount::FilledIn, request.checked_add(beside)?))
        } else {
            None
        };
        let bounds = by_limit.into_iter().chain(by_request);
        bounds.min_by_key(|bound| bound.highest)
    }
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
        [ReconcileMode::Ray, ReconcileMode::Central].map(|mode| {
            let bound = PodLevelBound::of(&cluster, group, resource, mode)?;
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
