//! The requests of a pod besides its ray container, and those of the pod when the ray container has
//! grown to its resize limits.

use serde_json::Value;

use crate::quantity::Quantity;
use crate::ray::{Cluster, Container, Group, Resource, list_at, object_at, text_at};

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
    /// autoscaler's container, which KubeRay adds (500m and 512Mi where
    /// `autoscalerOptions.resources` says nothing else; KubeRay, `BuildAutoscalerContainer`).
    pub fn of(cluster: &Cluster<'_>, group: &Group<'_>, resource: Resource) -> Self {
        let mut sum = Self::default();
        for container in group.containers().filter(|container| container.index > 0) {
            sum.add(&container, resource);
        }
        let Some(pod) = group.pod_spec() else {
            return sum;
        };
        for sidecar in list_at(pod, "initContainers")
            .iter()
            .filter_map(Value::as_object)
            // KEP-753: an init container that is always restarted is a sidecar and runs as long as
            // the pod.
            .filter(|init| text_at(init, "restartPolicy") == Some("Always"))
        {
            sum.add(&Container::new(0, sidecar), resource);
        }
        let overhead = object_at(pod, "overhead").and_then(|map| map.get(resource.name()));
        if let Some(Ok(overhead)) = overhead.map(Quantity::from_json) {
            sum.requests = plus(sum.requests, overhead);
        }
        if group.is_head() && cluster.autoscaling() {
            sum.add_autoscaler(cluster, resource);
        }
        sum
    }

    fn add(&mut self, container: &Container<'_>, resource: Resource) {
        let limit = container.limit(resource.name());
        // The API server fills a request that is absent in from the limit.
        let request = container.request(resource.name()).or(limit);
        self.requests = plus(self.requests, request.unwrap_or_default());
        self.limits = plus(self.limits, limit.unwrap_or_default());
    }

    fn add_autoscaler(&mut self, cluster: &Cluster<'_>, resource: Resource) {
        let options = cluster.autoscaler_options();
        if let Some(options) = options.filter(|options| object_at(options, "resources").is_some()) {
            // `autoscalerOptions` has its `resources` where a container has them.
            return self.add(&Container::new(0, options), resource);
        }
        let size = match resource {
            Resource::Cpu => Quantity::from_milli(500),
            Resource::Memory => Quantity::from_units(512 << 20),
        };
        self.requests = plus(self.requests, size);
        self.limits = plus(self.limits, size);
    }
}

/// The sum, or the left side where the sum cannot be represented.
fn plus(left: Quantity, right: Quantity) -> Quantity {
    left.checked_add(right).unwrap_or(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ray::{Fields, Kind};
    use serde_json::json;

    fn beside(spec: &Value, resource: Resource) -> BesideRay {
        let fields: &Fields = spec.as_object().unwrap();
        let cluster = Cluster::parse(Kind::RayCluster, fields);
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
