//! The most CPU or memory that a pod of a group may take, and its containers that nothing bounds.
//!
//! The larger of Ray's view and Kubernetes' counts: the limits of all containers, added up as
//! Kubernetes adds up a pod (component-helpers, `PodRequests` and `PodLimits`), the pod's own
//! `resources`, and the ray container at its resize limit in `ray.io/ippr`. A container without a
//! limit may take what its node has. Kubernetes' own check of a pod's maximum says so too
//! (admission plugin `LimitRanger`: "No limit is specified").

use serde_json::Value;

use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Container, Group, Resource, list_at, object_at, text_at};

/// A container of a pod, with the role that Kubernetes gives it.
#[derive(Debug)]
pub struct SizePart<'a> {
    /// The container; `None` for an autoscaler's container with the size that KubeRay gives it.
    pub container: Option<Container<'a>>,
    role: Role,
    path: FieldPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The first container, which grows in place.
    Ray,
    /// A container that runs as long as the pod.
    Beside,
    /// An init container that runs before the others and ends.
    Init,
    /// An init container that starts before the others and goes on running.
    Sidecar,
}

impl<'a> SizePart<'a> {
    /// The containers of a pod of `group`. Init containers are in their order. An autoscaled head
    /// also has the autoscaler's container, which KubeRay adds.
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
            path: group.init_container_path(index, spec),
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

    /// The name by which messages call the container.
    fn title(&self) -> String {
        let container = self.container.as_ref();
        match container.and_then(Container::name) {
            Some(name) => format!("container {}", crate::text::shown_text(name)),
            None if self.role == Role::Beside => "the autoscaler's container".to_owned(),
            None => "a container".to_owned(),
        }
    }
}

/// Amounts of a pod's containers, added up in their order as Kubernetes does: containers that run at
/// the same time are added up, and a container that ends before counts only where it takes more.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodSum {
    sidecars: Quantity,
    running: Quantity,
    peak: Quantity,
}

impl PodSum {
    /// Adds what a container takes. One that takes nothing need not be added.
    pub fn add(&mut self, part: &SizePart<'_>, amount: Quantity) {
        match part.role {
            Role::Ray | Role::Beside => self.running = plus(self.running, amount),
            Role::Sidecar => self.sidecars = plus(self.sidecars, amount),
            Role::Init => self.peak = self.peak.max(plus(self.sidecars, amount)),
        }
    }

    /// The amount that the pod takes.
    pub fn total(self) -> Quantity {
        plus(self.running, self.sidecars).max(self.peak)
    }
}

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
    /// Whether a limit of the pod as a whole counts, because the API server knows of such limits.
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
        let parts: Vec<SizePart<'_>> = SizePart::of(cluster, group).collect();
        let mut sum = PodSum::default();
        for part in &parts {
            let most = match &part.container {
                Some(container) => size(container, resource).or_default(bounds.default).most,
                None => kuberays(resource),
            };
            let most = match part.role {
                Role::Ray => most.max(limit.unwrap_or_default()),
                _ => most,
            };
            sum.add(part, most);
        }
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
            written: plus(sum.total().max(whole_most), whole.overhead),
            unbounded: unbounded.collect(),
        }
    }
}

/// The most that a container may take, and whether a limit says so.
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

/// Whether a limit bounds anything.
fn is_some_of_it(limit: Quantity) -> bool {
    // The kubelet sets no bound for a limit of zero.
    limit > Quantity::ZERO
}

/// The amount that KubeRay gives the autoscaler's container, as request and limit (KubeRay,
/// `BuildAutoscalerContainer`).
const fn kuberays(resource: Resource) -> Quantity {
    match resource {
        Resource::Cpu => Quantity::from_milli(500),
        Resource::Memory => Quantity::from_units(512 << 20),
    }
}

/// The limit, request and overhead that a pod's spec gives the pod as a whole.
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
        // The `resources` of a pod have the same form as those of a container.
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

/// The sum, or the larger side where the sum cannot be represented.
fn plus(left: Quantity, right: Quantity) -> Quantity {
    left.checked_add(right).unwrap_or(left.max(right))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ray::{Fields, Kind};

    const ALL: ContainerBounds = ContainerBounds {
        default: None,
        pod_level: true,
    };

    fn of(pod: &Value, limit: Option<i64>, bounds: ContainerBounds) -> (String, usize) {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": pod}}]});
        let fields: &Fields = spec.as_object().unwrap();
        let cluster = Cluster::parse(Kind::RayCluster, fields);
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
