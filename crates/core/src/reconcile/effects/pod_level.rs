//! The resources of a pod as a whole (`spec.resources`), which are resized along with its ray container.
//!
//! The API server refuses a resize after which the containers together request more than the pod does,
//! or one of them has a higher limit than the pod. (Kubernetes, `validation.go`, `ValidatePodResize`;
//! `InPlacePodLevelResourcesVerticalScaling`, on from 1.36.) So the pod's request follows its containers,
//! and never falls below that of the template; its limit stays as the template has it, and follows the
//! containers where the template has none and the API server has filled it in.

use serde_json::{Map, Value};

use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_object::Resources;
use crate::snapshot::requests::{ContainerSums, wanted};

/// The amount by which the request of the ray container is left below what it would be, if the pod
/// would otherwise change its quality-of-service class: a thousandth of a core, or a mebibyte.
const LESS: [(&str, Quantity); 2] = [
    ("cpu", Quantity::from_milli(1)),
    ("memory", Quantity::from_units(1 << 20)),
];

const NAMES: [&str; 2] = ["cpu", "memory"];

/// The pod-level resources of a pod, with those of the containers beside its ray container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodLevel {
    now: Resources,
    /// The pod-level resources of the pod template.
    template: Resources,
    requests: ContainerSums,
    limits: ContainerSums,
}

impl PodLevel {
    /// The pod-level resources of a pod; `None` if only its containers have resources.
    pub(crate) fn of(pod: &Pod<'_>, template: Resources) -> Option<Self> {
        let now = pod.object.spec.resources;
        (!now.is_empty()).then(|| Self {
            now,
            template,
            requests: ContainerSums::beside_ray(&pod.object.spec, wanted),
            limits: ContainerSums::beside_ray(&pod.object.spec, |container| {
                container.resources.limits
            }),
        })
    }

    /// The sum of the requests of the pod's containers, where its ray container has these amounts.
    pub(crate) fn containers(&self, ray: Resources) -> Amounts {
        self.requests.with(ray.requests.or(ray.limits))
    }

    /// The ray container and the pod as a whole after a resize that gives the ray container these amounts, and
    /// changes only the resources of these names.
    pub(crate) fn resized(&self, ray: Resources, changes: &[&str]) -> (Resources, Resources) {
        let (mut ray, mut whole) = self.with(ray, changes);
        if is_guaranteed(self.now) {
            // Its class stays only if the requests stay at the limits.
            let Resources { requests, limits } = &mut whole;
            *requests = requests.max(*limits);
            *limits = *requests;
        } else if is_guaranteed(whole) {
            // A container without a limit has the size of its request, and keeps it.
            let mut lowered = LESS.iter().filter_map(|(name, less)| {
                let mut ray = ray;
                let request = ray.requests.get(name)?.checked_sub(*less)?;
                ray.limits.get(name).filter(|_| changes.contains(name))?;
                ray.requests.set(name, Some(request));
                Some(self.with(ray, changes))
            });
            let other = lowered.find(|(_, whole)| !is_guaranteed(*whole));
            (ray, whole) = other.unwrap_or((ray, whole));
        }
        (ray, whole)
    }

    fn with(&self, ray: Resources, changes: &[&str]) -> (Resources, Resources) {
        let requests = self.containers(ray);
        let limits = self.limits.with(ray.limits);
        let mut pod = self.now;
        for name in changes {
            let get = |amounts: Amounts| amounts.get(name).unwrap_or_default();
            let written = self.template.limits.get(name);
            let mut request = get(requests).max(get(self.template.requests));
            let limit = self.now.limits.get(name).map(|now| match written {
                // A template that was edited since allows more than the pod was made with.
                Some(written) => now.max(written.min(request.max(get(ray.limits)))),
                None => request.max(get(limits)),
            });
            // A request beyond the limit is left to the API server to refuse.
            request = request.min(limit.unwrap_or(request).max(get(requests)));
            pod.limits.set(name, limit);
            let is_there = self.now.requests.get(name).is_some();
            pod.requests.set(name, is_there.then_some(request));
        }
        (ray, pod)
    }

    /// The part of the patch that concerns the pod as a whole; `None` if it stays as it is.
    pub(crate) fn patch(&self, whole: Resources) -> Option<Value> {
        let changed = |now: Amounts, then: Amounts| Amounts {
            cpu: then.cpu.filter(|_| then.cpu != now.cpu),
            memory: then.memory.filter(|_| then.memory != now.memory),
        };
        let parts = Resources {
            requests: changed(self.now.requests, whole.requests),
            limits: changed(self.now.limits, whole.limits),
        };
        (!parts.is_empty()).then(|| written(parts, &NAMES))
    }
}

/// Patch fragment with the limits and requests of `names`.
pub(crate) fn written(resources: Resources, names: &[&str]) -> Value {
    let parts = [
        ("limits", resources.limits),
        ("requests", resources.requests),
    ];
    let parts = parts.map(|(part, amounts)| {
        let amounts = names.iter().filter_map(|name| {
            let amount = amounts.get(name)?;
            Some(((*name).to_owned(), Value::String(amount.to_string())))
        });
        (part.to_owned(), Value::Object(amounts.collect()))
    });
    let parts = parts.into_iter();
    let parts = parts.filter(|(_, amounts)| amounts.as_object().is_some_and(|all| !all.is_empty()));
    Value::Object(parts.collect::<Map<_, _>>())
}

/// Checks whether a pod of these resources has the quality-of-service class Guaranteed. (Kubernetes, `qos.go`,
/// `requirementsQOS`.)
fn is_guaranteed(pod: Resources) -> bool {
    NAMES.into_iter().all(|name| {
        let request = pod.requests.get(name).unwrap_or_default();
        !request.is_zero() && request == pod.limits.get(name).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::quantity::Quantity;
    use crate::ray::resource::{Amounts, CpuAndMemory};
    use crate::reconcile::effects::size::PodSize;
    use crate::snapshot::pod::Pod;
    use crate::snapshot::pod_object::{PodObject, Resources};

    fn resources(value: Value) -> Resources {
        serde_json::from_value(value).unwrap()
    }

    fn amounts(cpu: &str, memory: &str) -> Value {
        json!({"cpu": cpu, "memory": memory})
    }

    /// A pod with a ray container of these amounts and one beside it of 500m and 1Gi.
    fn pod(whole: &Value, ray: &Value) -> Value {
        let logs = amounts("500m", "1Gi");
        json!({"metadata": {"name": "w"}, "spec": {"resources": whole, "containers": [
            {"name": "ray", "resources": {"requests": ray, "limits": ray}},
            {"name": "logs", "resources": {"requests": logs}},
        ]}})
    }

    /// The request of a resize: the ray container, and the pod as a whole.
    fn asked(pod: &Value, template: &Value, cpu_milli: i64, memory_gi: i64) -> (Value, Value) {
        let pod: PodObject = serde_json::from_value(pod.clone()).unwrap();
        let size = PodSize::of(Pod::of(&pod), resources(template.clone())).unwrap();
        let mut patch = size.patch(CpuAndMemory {
            cpu_milli,
            memory_bytes: memory_gi << 30,
        });
        let spec = &mut patch["spec"];
        let ray = spec["containers"][0]["resources"].take();
        (ray, spec["resources"].take())
    }

    fn both(cpu: &str) -> Value {
        json!({"limits": {"cpu": cpu}, "requests": {"cpu": cpu}})
    }

    #[test]
    fn the_request_of_the_pod_follows_its_containers_and_returns_to_the_templates() {
        let template = json!({"requests": amounts("2", "4Gi"), "limits": amounts("8", "16Gi")});
        let small = pod(&template, &amounts("1", "2Gi"));
        assert_eq!(
            asked(&small, &template, 1500, 2),
            (both("1.5"), Value::Null),
            "the pod requests two cores already"
        );
        let raised = json!({"requests": {"cpu": "4.5"}});
        assert_eq!(asked(&small, &template, 4000, 2), (both("4"), raised));
        let large = json!({"requests": amounts("4500m", "4Gi"), "limits": amounts("8", "16Gi")});
        let large = pod(&large, &amounts("4", "2Gi"));
        let lowered = json!({"requests": {"cpu": "2"}});
        assert_eq!(asked(&large, &template, 1000, 2), (both("1"), lowered));
    }

    #[test]
    fn what_the_api_server_has_filled_in_follows_the_containers() {
        // A limit of memory only: the rest is filled in, with limits from Kubernetes 1.37 on where all
        // containers have one.
        let template = json!({"limits": {"memory": "16Gi"}});
        let filled =
            json!({"requests": amounts("1500m", "3Gi"), "limits": amounts("1500m", "16Gi")});
        let mut pod = pod(&filled, &amounts("1", "2Gi"));
        pod["spec"]["containers"][1]["resources"]["limits"] = amounts("500m", "1Gi");
        let (_, whole) = asked(&pod, &template, 4000, 4);
        let raised = json!({"limits": {"cpu": "4.5"}, "requests": amounts("4.5", "5368709120")});
        assert_eq!(whole, raised);
    }

    #[test]
    fn a_limit_of_the_template_is_not_exceeded_and_followed_where_it_was_raised() {
        let of = |cpu: &str| json!({"requests": amounts("1500m", "3Gi"), "limits": amounts(cpu, "16Gi")});
        let pod = pod(&of("4"), &amounts("1", "2Gi"));
        let whole = |template: &Value, cpu_milli| asked(&pod, template, cpu_milli, 2).1;
        assert_eq!(whole(&of("4"), 3000), json!({"requests": {"cpu": "3.5"}}));
        let beyond = json!({"requests": {"cpu": "6.5"}});
        assert_eq!(whole(&of("4"), 6000), beyond, "which Kubernetes refuses");
        let raised = json!({"limits": {"cpu": "6.5"}, "requests": {"cpu": "6.5"}});
        assert_eq!(whole(&of("8"), 6000), raised);
    }

    #[test]
    fn the_quality_of_service_class_stays() {
        let template = json!({"requests": amounts("2", "16Gi"), "limits": amounts("4", "16Gi")});
        let burstable = pod(&template, &amounts("1", "2Gi"));
        let (ray, whole) = asked(&burstable, &template, 3500, 2);
        let ray_asked = json!({"limits": {"cpu": "3.5"}, "requests": {"cpu": "3.499"}});
        assert_eq!(ray, ray_asked, "with 3.5 the pod would become Guaranteed");
        assert_eq!(whole, json!({"requests": {"cpu": "3.999"}}));

        let template = json!({"requests": amounts("2", "3Gi")});
        let filled = json!({"requests": amounts("2", "3Gi"), "limits": amounts("2", "3Gi")});
        let mut guaranteed = pod(&filled, &amounts("1", "2Gi"));
        guaranteed["spec"]["containers"][1]["resources"]["limits"] = amounts("1", "1Gi");
        let (ray, whole) = asked(&guaranteed, &template, 4000, 2);
        assert_eq!((ray, whole), (both("4"), both("5")));
    }

    #[test]
    fn what_a_node_can_give_is_counted_without_the_room_of_the_pod() {
        use crate::plan::ResizeNote;
        let whole = json!({"requests": amounts("4", "8Gi"), "limits": amounts("16", "16Gi")});
        let pod = serde_json::from_value(pod(&whole, &amounts("1", "2Gi"))).unwrap();
        let size = PodSize::of(Pod::of(&pod), resources(whole)).unwrap();
        let mut note = ResizeNote::default();
        let allocatable = Amounts {
            cpu: Some(Quantity::from_units(8)),
            memory: None,
        };
        assert!(size.learn(&mut note, allocatable));
        assert_eq!(note.suggested_max_cpu, Some(7.5));
    }
}
