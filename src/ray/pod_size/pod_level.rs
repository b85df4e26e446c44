//! What the resources of a pod as a whole (`template.spec.resources`) leave its ray container to grow
//! to. A resize of a container does not change them.

use super::BesideRay;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Fields, Group, Resource, object_at};

/// The most that a ray container may have within its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodLevelBound {
    /// The highest limit, or request where there is no limit, of the ray container.
    pub highest: Quantity,
    /// Which amount of the pod bounds it.
    pub by: PodLevelAmount,
    /// That amount.
    pub amount: Quantity,
    /// What the pod's other containers take of it.
    pub beside: Quantity,
}

/// An amount of a pod as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodLevelAmount {
    /// Its limit, which no container's limit may exceed.
    Limit,
    /// Its request, which the requests of all containers together may not exceed.
    Request,
}

impl PodLevelBound {
    /// The bound of a group's ray container, if the pod has amounts of its own. (Kubernetes,
    /// `validation.go`, `validatePodResourceConsistency`.)
    pub fn of(cluster: &Cluster<'_>, group: &Group<'_>, resource: Resource) -> Option<Self> {
        let resources = object_at(group.pod_spec()?, "resources")?;
        let container = group.ray_container()?;
        let beside = BesideRay::of(cluster, group, resource).requests;
        let limit = amount(resources, "limits", resource);
        let request = amount(resources, "requests", resource);
        let by_limit = limit.map(|limit| Self {
            highest: limit,
            by: PodLevelAmount::Limit,
            amount: limit,
            beside: Quantity::ZERO,
        });
        let by_request = request.and_then(|request| {
            let left = request.checked_sub(beside)?;
            Some(Self {
                highest: left.checked_add(container.gap(resource))?,
                by: PodLevelAmount::Request,
                amount: request,
                beside,
            })
        });
        let bounds = by_limit.into_iter().chain(by_request);
        bounds.min_by_key(|bound| bound.highest)
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

    fn highest(pod: &Value, resource: Resource) -> Option<String> {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": {"resources": pod, "containers": [
            {"name": "ray", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
            {"name": "logs", "resources": {"requests": {"cpu": "500m"}}},
        ]}}}]});
        let cluster = Cluster::parse(Kind::RayCluster, spec.as_object().unwrap());
        let bound = PodLevelBound::of(&cluster, cluster.groups().next().unwrap(), resource)?;
        Some(resource.show(bound.highest))
    }

    #[test]
    fn the_tightest_amount_of_the_pod_counts() {
        let cpu = |pod: Value| highest(&pod, Resource::Cpu);
        assert_eq!(cpu(json!({})), None);
        assert_eq!(cpu(json!({"limits": {"cpu": "4"}})).as_deref(), Some("4"));
        assert_eq!(
            cpu(json!({"limits": {"cpu": "8"}, "requests": {"cpu": "4"}})).as_deref(),
            Some("4500m"),
            "the gap of one core is kept, and the other container takes half of one"
        );
        assert_eq!(
            highest(&json!({"limits": {"cpu": "4"}}), Resource::Memory),
            None
        );
    }
}
