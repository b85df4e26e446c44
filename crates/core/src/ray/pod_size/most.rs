//! The most CPU or memory that a pod of a group may take, and its containers that nothing bounds.
//!
//! The larger of Ray's view and Kubernetes' counts: the limits of all containers, added up as
//! Kubernetes adds up a pod (component-helpers, `PodRequests` and `PodLimits`), the pod's own
//! `resources`, and the ray container at its resize limit in `ray.io/ippr`. A container without a
//! limit may take what its node has. Kubernetes' own check of a pod's maximum says so too
//! (admission plugin `LimitRanger`: "No limit is specified").

use super::parts::{PartRole, PodSum, kuberays, parts, plus};
use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Container, Group, Resource};
use crate::text::shown_text;

/// The most that a pod may take of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodMost {
    /// The sum of all amounts that are written.
    pub written: Quantity,
    /// The containers besides that nothing bounds.
    pub unbounded: Vec<Unbounded>,
}

/// A container that no limit bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbounded {
    /// The name by which messages call the container: `container "envoy"`.
    pub title: String,
    /// The path at which its limit is missing.
    pub path: FieldPath,
}

/// The bounds of a container besides its template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContainerBounds {
    /// The limit that the API server gives a container without one (a LimitRange's default).
    pub default: Option<Quantity>,
    /// A limit of the pod as a whole counts, because the API server knows of such limits.
    pub pod_level: bool,
}

impl PodMost {
    /// The most that a pod of `group` may take, whose ray container may grow to `limit`.
    pub fn of(
        (cluster, group): (&Cluster<'_>, &Group<'_>),
        resource: Resource,
        limit: Option<Quantity>,
        bounds: ContainerBounds,
    ) -> Self {
        // The kubelet sets no bound for a limit of zero.
        let is_bound = |limit: &Quantity| *limit > Quantity::ZERO;
        let pod = group.pod_spec;
        // The `resources` of a pod have the same form as those of a container.
        let whole = pod.map(|pod| Container::new(0, pod));
        let whole_limit = whole.and_then(|whole| whole.limit(resource.name()));
        let whole_request = whole.and_then(|whole| whole.request(resource.name()));
        let is_bounded = bounds.pod_level && whole_limit.as_ref().is_some_and(is_bound);

        let mut sum = PodSum::default();
        let mut unbounded = Vec::new();
        for (role, container) in parts(cluster, group) {
            let Some(container) = container else {
                sum.add(role, kuberays(resource));
                continue;
            };
            let written = container.limit(resource.name());
            let bound = written.filter(is_bound).or(bounds.default.filter(is_bound));
            let most = bound.max(written).max(container.request(resource.name()));
            let most = most.unwrap_or_default().max(Quantity::ZERO);
            let grown = limit.filter(|_| role == PartRole::Ray);
            sum.add(role, most.max(grown.unwrap_or_default()));
            if bound.is_some() || is_bounded {
                continue;
            }
            let path = match role {
                PartRole::Autoscaler => cluster.path().key("autoscalerOptions"),
                PartRole::Init | PartRole::Sidecar => group.init_container_path(&container),
                PartRole::Ray | PartRole::Beside => group.container_path(&container),
            };
            unbounded.push(Unbounded {
                title: match container.name() {
                    Some(name) => format!("container {}", shown_text(name)),
                    None if role == PartRole::Autoscaler => "the autoscaler's container".to_owned(),
                    None => "a container".to_owned(),
                },
                path: path.key("resources").key("limits").key(resource.name()),
            });
        }

        let overhead = pod.and_then(|pod| pod.object("overhead"));
        let overhead = overhead.and_then(|map| Quantity::from_json(map.get(resource.name())?).ok());
        let overhead = overhead.filter(|overhead| !overhead.is_negative());
        let whole_most = whole_limit.max(whole_request).unwrap_or_default();
        Self {
            written: plus(sum.total().max(whole_most), overhead.unwrap_or_default()),
            unbounded,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ray::Kind;

    const ALL: ContainerBounds = ContainerBounds {
        default: None,
        pod_level: true,
    };

    fn of(pod: &Value, limit: Option<i64>, bounds: ContainerBounds) -> (String, usize) {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": pod}}]});
        let cluster = Cluster::parse(Kind::RayCluster, &spec);
        let limit = limit.map(Quantity::from_units);
        let most = PodMost::of(
            (&cluster, &cluster.workers[0]),
            Resource::Cpu,
            limit,
            bounds,
        );
        (most.written.display_cpu(), most.unbounded.len())
    }

    fn cpu(limit: i64) -> Value {
        json!({"resources": {"limits": {"cpu": limit}}})
    }

    #[test]
    fn every_container_counts_as_kubernetes_counts_it() {
        let mut sidecar = cpu(1);
        sidecar["restartPolicy"] = json!("Always");
        let written = |pod: &Value| of(pod, None, ALL);
        assert_eq!(
            written(&json!({"containers": [cpu(2), cpu(3)], "overhead": {"cpu": "500m"}})),
            ("5500m".to_owned(), 0)
        );
        let init = json!({"initContainers": [cpu(64)], "containers": [cpu(2)]});
        assert_eq!(written(&init), ("64".to_owned(), 0));
        let later = json!({"initContainers": [sidecar, cpu(4)], "containers": [cpu(2)]});
        assert_eq!(written(&later), ("5".to_owned(), 0));
        let asked = json!({"containers": [{"resources": {"requests": {"cpu": 9}}}]});
        assert_eq!(written(&asked), ("9".to_owned(), 1));
        assert_eq!(
            of(&json!({"containers": [cpu(2)]}), Some(8), ALL),
            ("8".to_owned(), 0)
        );
    }

    #[test]
    fn nothing_bounds_a_container_without_a_limit_but_the_pod_or_a_default() {
        let pod = json!({"containers": [cpu(2), {"name": "x"}, cpu(0)]});
        assert_eq!(of(&pod, None, ALL), ("2".to_owned(), 2));
        let default = ContainerBounds {
            default: Some(Quantity::from_units(1)),
            ..ALL
        };
        assert_eq!(of(&pod, None, default), ("4".to_owned(), 0));
        let mut whole = pod;
        whole["resources"] = json!({"limits": {"cpu": 6}});
        assert_eq!(of(&whole, None, ALL), ("6".to_owned(), 0));
        assert_eq!(
            of(&whole, None, ContainerBounds::default()),
            ("6".to_owned(), 2)
        );
    }

    #[test]
    fn an_autoscaled_head_has_the_autoscaler_beside_it() {
        let head = |options: Value| {
            let spec = json!({"enableInTreeAutoscaling": true, "autoscalerOptions": options,
                "headGroupSpec": {"template": {"spec": {"containers": [cpu(1)]}}}});
            let cluster = Cluster::parse(Kind::RayCluster, spec.as_object().unwrap());
            let group = cluster.head.as_ref().unwrap();
            let most = PodMost::of((&cluster, group), Resource::Cpu, None, ALL);
            (most.written.display_cpu(), most.unbounded.len())
        };
        assert_eq!(head(json!({})), ("1500m".to_owned(), 0));
        assert_eq!(
            head(json!({"resources": {"limits": {"cpu": 3}}})),
            ("4".to_owned(), 0)
        );
        assert_eq!(
            head(json!({"resources": {"requests": {"cpu": 3}}})),
            ("4".to_owned(), 1)
        );
    }
}
