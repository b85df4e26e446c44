//! The containers of a pod of a group in the roles that Kubernetes gives them, their amounts added up, and what the pod
//! requests besides its ray container.

use crate::quantity::Quantity;
use crate::ray::{Cluster, Container, Group, Resource};

/// The role that Kubernetes gives a container of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartRole {
    /// The first container, which grows in place.
    Ray,
    /// A container that runs as long as the pod.
    Beside,
    /// The container of Ray's autoscaler, which KubeRay adds to an autoscaled head.
    Autoscaler,
    /// An init container that runs before the others and ends.
    Init,
    /// An init container that starts before the others and goes on running.
    Sidecar,
}

/// The containers of a pod of `group` with their roles, where init containers are in their order and come first. There
/// is none for an autoscaler's container with the size that KubeRay gives it.
pub(super) fn parts<'a>(
    cluster: &Cluster<'a>,
    group: &Group<'a>,
) -> Vec<(PartRole, Option<Container<'a>>)> {
    let init = group.init_containers().map(|container| {
        // KEP-753: an init container that is always restarted runs as long as the pod.
        match container.spec.text("restartPolicy") {
            Some("Always") => (PartRole::Sidecar, Some(container)),
            _ => (PartRole::Init, Some(container)),
        }
    });
    let others = group.containers().map(|container| match container.index {
        0 => (PartRole::Ray, Some(container)),
        _ => (PartRole::Beside, Some(container)),
    });
    let mut parts: Vec<_> = init.chain(others).collect();
    if group.is_head() && cluster.autoscaling() {
        let options = cluster.autoscaler_options();
        // `autoscalerOptions` has its `resources` where a container has them.
        let sized = options.filter(|options| options.object("resources").is_some());
        let container = sized.map(|options| Container::new(0, options));
        parts.push((PartRole::Autoscaler, container));
    }
    parts
}

/// The amount that KubeRay gives the autoscaler's container, as request and limit (KubeRay,
/// `BuildAutoscalerContainer`).
pub(super) const fn kuberays(resource: Resource) -> Quantity {
    match resource {
        Resource::Cpu => Quantity::from_milli(500),
        Resource::Memory => Quantity::from_units(512 << 20),
    }
}

/// The sum, or the larger side where the sum cannot be represented.
pub(super) fn plus(left: Quantity, right: Quantity) -> Quantity {
    left.checked_add(right).unwrap_or(left.max(right))
}

/// Amounts of a pod's containers, added up in their order as Kubernetes does: containers that run at
/// the same time are added up, and a container that ends before counts only where it takes more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PodSum {
    sidecars: Quantity,
    running: Quantity,
    peak: Quantity,
}

impl PodSum {
    /// Adds what a container takes. One that takes nothing need not be added.
    pub(super) fn add(&mut self, role: PartRole, amount: Quantity) {
        match role {
            PartRole::Ray | PartRole::Beside | PartRole::Autoscaler => {
                self.running = plus(self.running, amount);
            }
            PartRole::Sidecar => self.sidecars = plus(self.sidecars, amount),
            PartRole::Init => self.peak = self.peak.max(plus(self.sidecars, amount)),
        }
    }

    /// The amount that the pod takes.
    pub(super) fn total(self) -> Quantity {
        plus(self.running, self.sidecars).max(self.peak)
    }
}

/// The requests and limits of the rest of a pod for one resource. An amount that is not given
/// counts as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BesideRay {
    /// The requests. A container's limit stands for a request that is missing, as in the API
    /// server.
    pub requests: Quantity,
    /// The limits.
    pub limits: Quantity,
}

impl BesideRay {
    /// Adds up what runs beside the ray container of `group`: its other containers, the init
    /// containers that go on running, the pod's overhead and, on an autoscaled head, the
    /// autoscaler's container.
    pub fn of(cluster: &Cluster<'_>, group: &Group<'_>, resource: Resource) -> Self {
        let mut sum = Self::default();
        for (role, container) in parts(cluster, group) {
            if matches!(role, PartRole::Ray | PartRole::Init) {
                continue;
            }
            let (request, limit) = match container {
                Some(container) => {
                    let limit = container.limit(resource.name());
                    // The API server fills a request that is absent in from the limit.
                    (container.request(resource.name()).or(limit), limit)
                }
                None => (Some(kuberays(resource)), Some(kuberays(resource))),
            };
            sum.requests = plus(sum.requests, request.unwrap_or_default());
            sum.limits = plus(sum.limits, limit.unwrap_or_default());
        }
        let overhead = group.pod_spec.and_then(|pod| pod.object("overhead"));
        let overhead = overhead.and_then(|map| map.get(resource.name()));
        if let Some(Ok(overhead)) = overhead.map(Quantity::from_json) {
            sum.requests = plus(sum.requests, overhead);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ray::Kind;
    use serde_json::{Value, json};

    fn beside(spec: &Value, resource: Resource) -> BesideRay {
        let cluster = Cluster::parse(Kind::RayCluster, spec);
        BesideRay::of(&cluster, cluster.groups().next().unwrap(), resource)
    }

    #[test]
    fn adds_up_the_rest_of_the_pod_but_not_the_ray_container() {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": {
            "overhead": {"cpu": "10m"},
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "20m"}}},
                {"resources": {"requests": {"cpu": "9"}}}],
            "containers": [
                {"resources": {"requests": {"cpu": "4"}}},
                {"resources": {"limits": {"cpu": "200m"}}},
                {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "300m"}}}]}}}]});
        let beside = beside(&spec, Resource::Cpu);
        assert_eq!(beside.requests, Quantity::from_milli(330));
        assert_eq!(beside.limits, Quantity::from_milli(500));
    }

    #[test]
    fn an_autoscaled_head_has_the_autoscaler_beside_it() {
        let head = json!({"template": {"spec": {"containers": [{}]}}});
        let with = |options: Value| {
            json!({"enableInTreeAutoscaling": true, "autoscalerOptions": options,
                "headGroupSpec": head})
        };
        let requests = |spec: Value| beside(&spec, Resource::Cpu).requests;
        assert_eq!(requests(with(json!({}))), Quantity::from_milli(500));
        let small = json!({"resources": {"limits": {"cpu": "50m"}}});
        assert_eq!(requests(with(small)), Quantity::from_milli(50));
        assert_eq!(requests(json!({"headGroupSpec": head})), Quantity::ZERO);
    }
}
