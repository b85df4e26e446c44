//! The size of a pod's ray container, and the patch that changes it.

use serde_json::{Value, json};

use crate::plan::{ResizeNote, STATUS_ANNOTATION};
use crate::quantity::Quantity;
use crate::ray::resource::{Amounts, CpuAndMemory, bytes};
use crate::reconcile::effects::effect::{Effect, PodPatch};
use crate::reconcile::effects::pod_level::{PodLevel, written};
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_object::Resources;

/// The facts about a pod that a resize needs. The ray container is the pod's first container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodSize {
    pub(crate) name: String,
    uid: String,
    container: String,
    /// The resources of the ray container, as the pod's spec has them.
    ray: Resources,
    /// The amounts by which its limits exceed its requests. A resize keeps them, because Kubernetes refuses a resize
    /// that changes the pod's quality-of-service class.
    gap: Amounts,
    /// The requests of the pod besides this container.
    others: Amounts,
    /// The pod as a whole, if it has resources of its own.
    pod_level: Option<PodLevel>,
}

impl PodSize {
    /// Reads a pod, whose group's template gives it these resources as a whole; `None` if it lacks a
    /// field that every pod in the API server has.
    pub(crate) fn of(pod: Pod<'_>, template: Resources) -> Option<Self> {
        let container = pod.containers().first()?;
        let ray = container.resources;
        let (cpu_gap, memory_gap) = crate::plan::gap(&pod);
        let pod_level = PodLevel::of(&pod, template);
        let all = match &pod_level {
            // Its request follows those of its containers.
            Some(pod_level) => pod_level.containers(ray).plus(pod.object.spec.overhead),
            None => pod.requests(),
        };
        // The API server takes a limit for the request if only the limit is set.
        let own = ray.requests.or(ray.limits);
        let rest = |all: Option<Quantity>, own: Option<Quantity>| {
            let rest = all.unwrap_or_default().checked_sub(own.unwrap_or_default());
            rest.unwrap_or_default().max(Quantity::ZERO)
        };
        Some(Self {
            name: pod.name.to_owned(),
            uid: pod.uid().to_owned(),
            container: container.name.clone(),
            ray,
            gap: Amounts::new(cpu_gap, memory_gap),
            others: Amounts::new(rest(all.cpu, own.cpu), rest(all.memory, own.memory)),
            pod_level,
        })
    }

    /// The strategic-merge patch of the subresource `resize`. Resources that already have the
    /// wanted size are left out.
    pub(crate) fn patch(&self, target: CpuAndMemory) -> Value {
        let (mut ray, mut changes) = (self.ray, Vec::new());
        for (name, size) in sizes(target) {
            if self.differs_in(name, size) {
                changes.push(name);
                // A resize may not add a limit where that changes the pod's quality-of-service class.
                ray.limits.set(name, ray.limits.get(name).map(|_| size));
                ray.requests.set(name, Some(self.request_for(name, size)));
            }
        }
        let mut spec = json!({});
        if let Some(pod_level) = &self.pod_level {
            let (resized, whole) = pod_level.resized(ray, &changes);
            ray = resized;
            if let Some(resources) = pod_level.patch(whole) {
                spec["resources"] = resources;
            }
        }
        let resources = written(ray, &changes);
        spec["containers"] = json!([{"name": self.container, "resources": resources}]);
        let mut body = json!({ "spec": spec });
        // Snapshots that were written by hand have no UIDs.
        if !self.uid.is_empty() {
            body["metadata"] = json!({"uid": self.uid});
        }
        body
    }

    /// The write of a note about the pod's resizes.
    pub(crate) fn noted(&self, note: &ResizeNote) -> Effect {
        Effect::NotePod(PodPatch {
            pod: self.name.clone(),
            body: json!({ "metadata": {
                "uid": self.uid, "annotations": { STATUS_ANNOTATION: note.text() }
            } }),
        })
    }

    /// Returns whether the pod's spec differs from the wanted size: the limit, or the request where there is no limit.
    pub(crate) fn differs(&self, target: CpuAndMemory) -> bool {
        let mut sizes = sizes(target).into_iter();
        sizes.any(|(name, size)| self.differs_in(name, size))
    }

    /// The wanted size, raised to what the raylet has kept in each resource that was to shrink.
    pub(crate) fn at_least(
        &self,
        target: CpuAndMemory,
        cpu: Option<f64>,
        memory: Option<f64>,
    ) -> CpuAndMemory {
        #[expect(clippy::cast_possible_truncation, reason = "rounded, saturating")]
        let raise = |target: i64, raylet: Option<f64>, unit: f64, now: i64| match raylet {
            Some(raylet) if target < now => target.max((raylet * unit).ceil() as i64).min(now),
            _ => target,
        };
        CpuAndMemory {
            cpu_milli: raise(target.cpu_milli, cpu, 1000.0, milli(self.size("cpu"))),
            memory_bytes: raise(target.memory_bytes, memory, 1.0, bytes(self.size("memory"))),
        }
    }

    /// Writes into the note the largest size that the Kubernetes node can give, if the API server
    /// stated it; says whether it did.
    pub(crate) fn learn(&self, note: &mut ResizeNote, allocatable: Amounts) -> bool {
        // The largest size with which the pod requests no more than that, and never less than its present size.
        let largest = |name: &str| {
            let room = allocatable.get(name)?.checked_sub(self.others.get(name)?);
            let room = room.unwrap_or_default();
            let limit = room.checked_add(self.gap.get(name)?).unwrap_or(room);
            Some(limit.max(self.size(name)))
        };
        let (cpu, memory) = (largest("cpu"), largest("memory"));
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine million cores")]
        if let Some(cpu) = cpu {
            note.suggested_max_cpu = Some(milli(cpu) as f64 / 1000.0);
        }
        if let Some(memory) = memory {
            note.suggested_max_memory = Some(bytes(memory));
        }
        cpu.is_some() || memory.is_some()
    }

    /// The limit of a resource, or the request where there is no limit.
    fn size(&self, name: &str) -> Quantity {
        let either = self.ray.limits.or(self.ray.requests);
        either.get(name).unwrap_or_default()
    }

    fn request_for(&self, name: &str, size: Quantity) -> Quantity {
        let limit = self.ray.limits.get(name);
        let gap = self.gap.get(name).filter(|_| limit.is_some());
        gap.and_then(|gap| size.checked_sub(gap)).unwrap_or(size)
    }

    fn differs_in(&self, name: &str, size: Quantity) -> bool {
        let Resources { requests, limits } = self.ray;
        limits.get(name).is_some_and(|limit| limit != size)
            || requests.get(name) != Some(self.request_for(name, size))
    }
}

/// The amounts of a size, with their names.
fn sizes(target: CpuAndMemory) -> [(&'static str, Quantity); 2] {
    let cpu = Quantity::from_milli(target.cpu_milli);
    let memory = Quantity::from_units(target.memory_bytes);
    [("cpu", cpu), ("memory", memory)]
}

fn milli(quantity: Quantity) -> i64 {
    i64::try_from(quantity.nanos() / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::pod_object::PodObject;

    #[test]
    fn a_resize_names_the_uid_of_its_pod() {
        let body = |uid: &Value| {
            let amounts = json!({"cpu": "1", "memory": "1Gi"});
            let object: PodObject = serde_json::from_value(json!({
                "metadata": {"name": "w", "uid": uid},
                "spec": {"containers": [
                    {"name": "ray", "resources": {"limits": amounts, "requests": amounts}}]},
            }))
            .unwrap();
            let target = CpuAndMemory {
                cpu_milli: 2000,
                memory_bytes: 1 << 30,
            };
            let pod = Pod::of(&object);
            let size = PodSize::of(pod, Resources::default()).unwrap();
            size.patch(target)
        };
        let resources = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}});
        let spec = json!({"containers": [{"name": "ray", "resources": resources}]});
        assert_eq!(
            body(&json!("u")),
            json!({"spec": spec, "metadata": {"uid": "u"}})
        );
        assert_eq!(body(&json!("")), json!({ "spec": spec }));
    }
}
