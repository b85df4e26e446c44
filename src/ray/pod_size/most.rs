//! The most that a pod of a group may take of CPU or memory, and what of it nothing bounds.
//!
//! What counts is the larger of what Ray and what Kubernetes sees: limits of all containers, added up
//! as Kubernetes adds up a pod (component-helpers, `PodRequests` and `PodLimits`), the pod's own
//! `resources`, and the ray container at its cap in `ray.io/ippr`. A container without a limit may
//! take what its node has; so says Kubernetes' own check of a pod's maximum (admission plugin
//! `LimitRanger`: "No limit is specified").

use serde_json::Value;

use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Container, Group, Resource, list_at, object_at, text_at};

/// A container of a pod, by what Kubernetes does with it.
#[derive(Debug)]
pub struct Part<'a> {
    /// The container; `None` for an autoscaler's container of KubeRay's own size.
    pub container: Option<Container<'a>>,
    role: Role,
    path: FieldPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The first container: the one that grows in place.
    Ray,
    /// It runs as long as the pod.
    Beside,
    /// It runs before the others and ends.
    Init,
    /// It starts before the others and stays.
    Sidecar,
}

impl<'a> Part<'a> {
    /// The containers of a pod of `group`, those that run before others in their order; on an
    /// autoscaled head with the autoscaler's container, which KubeRay adds.
    pub fn of(cluster: &Cluster<'a>, group: &Group<'a>) -> impl Iterator<Item = Self> {
        let init = group
            .pod_spec()
            .map_or(&[][..], |pod| list_at(pod, "initContainers"))
            .iter()
            .enumerate()
            .filter_map(|(index, spec)| Some((index, spec.as_object()?)));
        let before = init.map(|(index, spec)| Self {
            container: Some(Container::new(index, spec)),
            role: match text_at(spec, "restartPolicy") {
                Some("Always") => Role::Sidecar,
                _ => Role::Init,
            },
            path: group.pod_spec_path().key("initContainers").index(index),
        });
        let running = group.containers().map(|container| Self {
            container: Some(container),
            role: if container.index == 0 {
                Role::Ray
            } else {
                Role::Beside
            },
            path: group.container_path(&container),
        });
        let autoscaler = (group.is_head() && cluster.autoscaling()).then(|| Self {
            container: cluster
                .autoscaler_options()
                .filter(|options| object_at(options, "resources").is_some())
                .map(|options| Container::new(0, options)),
            role: Role::Beside,
            path: cluster.path().key("autoscalerOptions"),
        });
        let parts: Vec<Self> = before.chain(running).chain(autoscaler).collect();
        parts.into_iter()
    }

    /// How messages call it.
    fn title(&self) -> String {
        let container = self.container.as_ref();
        match container.and_then(Container::name) {
            Some(name) => format!("container {}", crate::text::shown_text(name)),
            None if self.role == Role::Beside => "the autoscaler's container".to_owned(),
            None => "a container".to_owned(),
        }
    }
}

/// Adds up amounts of a pod's containers as Kubernetes does: what runs at the same time together, and
/// what ends before counts only where it is more.
pub fn together<'p>(parts: &'p [Part<'p>], amount: impl Fn(&Part<'p>) -> Quantity) -> Quantity {
    let (mut sidecars, mut running, mut peak) = (Quantity::ZERO, Quantity::ZERO, Quantity::ZERO);
    for part in parts {
        let amount = amount(part);
        match part.role {
            Role::Ray | Role::Beside => running = plus(running, amount),
            Role::Sidecar => sidecars = plus(sidecars, amount),
            Role::Init => peak = peak.max(plus(sidecars, amount)),
        }
    }
    plus(running, sidecars).max(peak)
}

/// The most that a pod may take of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodMost {
    /// All that is written, together.
    pub written: Quantity,
    /// Containers that nothing bounds beside.
    pub unbounded: Vec<Unbounded>,
}

/// A container without a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbounded {
    /// How messages call it: `container "envoy"`.
    pub title: String,
    /// Where its limit is missing.
    pub path: FieldPath,
}

/// What bounds a container beside what its template says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The limit that the API server gives a container without one (a LimitRange's default).
    pub default: Option<Quantity>,
    /// A limit of the pod as a whole counts: the API server knows of such.
    pub pod_level: bool,
}

impl PodMost {
    /// Of a pod of `group`, whose ray container may grow to `cap`.
    pub fn of(
        (cluster, group): (&Cluster<'_>, &Group<'_>),
        resource: Resource,
        cap: Option<Quantity>,
        bounds: Bounds,
    ) -> Self {
        let parts: Vec<Part<'_>> = Part::of(cluster, group).collect();
        let sum = together(&parts, |part| {
            let most = match &part.container {
                Some(container) => size(container, resource).or_default(bounds.default).most,
                None => kuberays(resource),
            };
            match part.role {
                Role::Ray => most.max(cap.unwrap_or_default()),
                _ => most,
            }
        });
        let whole = PodLevel::of(group, resource);
        let bounded = bounds.pod_level && whole.limit.is_some_and(is_some_of_it);
        let unbounded = parts.iter().filter_map(|part| {
            let container = part.container.as_ref()?;
            let limited = size(container, resource).or_default(bounds.default).limited;
            (!limited && !bounded).then(|| Unbounded {
                title: part.title(),
                path: (part.path.clone())
                    .key("resources")
                    .key("limits")
                    .key(resource.name()),
            })
        });
        let whole_most = whole.limit.max(whole.request).unwrap_or_default();
        Self {
            written: plus(sum.max(whole_most), whole.overhead),
            unbounded: unbounded.collect(),
        }
    }
}

/// What a container may take.
#[derive(Debug, Clone, Copy)]
struct Size {
    most: Quantity,
    limited: bool,
}

impl Size {
    fn or_default(self, default: Option<Quantity>) -> Self {
        match default.filter(|default| !self.limited && is_some_of_it(*default)) {
            Some(default) => Self {
                most: self.most.max(default),
                limited: true,
            },
            None => self,
        }
    }
}

fn size(container: &Container<'_>, resource: Resource) -> Size {
    let limit = container.limit(resource.name());
    let request = container.request(resource.name());
    Size {
        most: limit.max(request).unwrap_or_default().max(Quantity::ZERO),
        limited: limit.is_some_and(is_some_of_it),
    }
}

/// A limit of nothing is none: the kubelet then sets no bound.
fn is_some_of_it(limit: Quantity) -> bool {
    limit > Quantity::ZERO
}

/// What KubeRay gives the autoscaler's container, as request and limit (KubeRay,
/// `BuildAutoscalerContainer`).
const fn kuberays(resource: Resource) -> Quantity {
    match resource {
        Resource::Cpu => Quantity::from_milli(500),
        Resource::Memory => Quantity::from_units(512 << 20),
    }
}

/// What a pod's spec says of the pod as a whole.
#[derive(Debug, Default)]
struct PodLevel {
    limit: Option<Quantity>,
    request: Option<Quantity>,
    overhead: Quantity,
}

impl PodLevel {
    fn of(group: &Group<'_>, resource: Resource) -> Self {
        let Some(pod) = group.pod_spec() else {
            return Self::default();
        };
        let overhead = object_at(pod, "overhead").and_then(|map| map.get(resource.name()));
        // Its `resources` are of the form of a container's.
        let whole = Container::new(0, pod);
        Self {
            limit: whole.limit(resource.name()),
            request: whole.request(resource.name()),
            overhead: overhead.and_then(amount).unwrap_or_default(),
        }
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    Quantity::from_json(value).ok().filter(|q| !q.is_negative())
}

/// The sum; the larger side where it is beyond what can be represented.
fn plus(left: Quantity, right: Quantity) -> Quantity {
    left.checked_add(right).unwrap_or(left.max(right))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ray::{Fields, Kind};

    const ALL: Bounds = Bounds {
        default: None,
        pod_level: true,
    };

    fn of(pod: &Value, cap: Option<i64>, bounds: Bounds) -> (String, usize) {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": pod}}]});
        let fields: &Fields = spec.as_object().unwrap();
        let cluster = Cluster::parse(Kind::RayCluster, fields);
        let cap = cap.map(Quantity::from_units);
        let most = PodMost::of((&cluster, &cluster.workers[0]), Resource::Cpu, cap, bounds);
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
        let default = Bounds {
            default: Some(Quantity::from_units(1)),
            ..ALL
        };
        assert_eq!(of(&pod, None, default), ("4".to_owned(), 0));
        let mut whole = pod;
        whole["resources"] = json!({"limits": {"cpu": 6}});
        assert_eq!(of(&whole, None, ALL), ("6".to_owned(), 0));
        assert_eq!(of(&whole, None, Bounds::default()), ("6".to_owned(), 2));
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
