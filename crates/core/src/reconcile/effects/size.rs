//! The size of a pod's ray container, and the patch that changes it.

use serde_json::{Value, json};

use crate::plan::{ResizeNote, STATUS_ANNOTATION};
use crate::quantity::Quantity;
use crate::ray::resource::{Amounts, CpuAndMemory};
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
    cpu: AppliedAmount,
    memory: AppliedAmount,
    /// The pod as a whole, if it has resources of its own.
    pod_level: Option<PodLevel>,
}

/// One resource of the ray container, as the pod's spec has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AppliedAmount {
    limit: Option<Quantity>,
    request: Option<Quantity>,
    /// The amount by which the limit exceeds the request. A resize keeps it, because Kubernetes
    /// refuses a resize that changes the pod's quality-of-service class.
    gap: Quantity,
    /// The requests of the pod besides this container.
    others: Quantity,
}

impl PodSize {
    /// Reads a pod, whose group's template gives it these resources as a whole; `None` if it lacks a
    /// field that every pod in the API server has.
    pub(crate) fn of(pod: Pod<'_>, template: Resources) -> Option<Self> {
        let container = pod.containers().first()?;
        let (limits, requests) = (container.resources.limits, container.resources.requests);
        let (cpu_gap, memory_gap) = crate::plan::gap(&pod);
        let pod_level = PodLevel::of(&pod, template);
        let all = match &pod_level {
            // Its request follows those of its containers.
            Some(pod_level) => pod_level
                .containers(container.resources)
                .plus(pod.object.spec.overhead),
            None => pod.requests(),
        };
        let amount = |name: &str, gap: Quantity| {
            // The API server takes a limit for the request if only the limit is set.
            let own = requests.or(limits).get(name);
            AppliedAmount {
                limit: limits.get(name),
                request: requests.get(name),
                gap,
                others: all
                    .get(name)
                    .unwrap_or_default()
                    .checked_sub(own.unwrap_or_default())
                    .unwrap_or_default()
                    .max(Quantity::ZERO),
            }
        };
        Some(Self {
            name: pod.name.to_owned(),
            uid: pod.uid().to_owned(),
            container: container.name.clone(),
            cpu: amount("cpu", cpu_gap),
            memory: amount("memory", memory_gap),
            pod_level,
        })
    }

    /// The strategic-merge patch of the subresource `resize`. Resources that already have the
    /// wanted size are left out.
    pub(crate) fn patch(&self, target: CpuAndMemory) -> Value {
        let (cpu, memory) = (&self.cpu, &self.memory);
        let mut ray = Resources {
            requests: Amounts {
                cpu: cpu.request,
                memory: memory.request,
            },
            limits: Amounts {
                cpu: cpu.limit,
                memory: memory.limit,
            },
        };
        let mut changes = Vec::new();
        for (name, amount, size) in self.sizes(target) {
            if amount.differs(size) {
                changes.push(name);
                // A resize may not add a limit where that changes the pod's quality-of-service class.
                ray.limits.set(name, amount.limit.map(|_| size));
                ray.requests.set(name, Some(amount.request_for(size)));
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
        self.sizes(target)
            .into_iter()
            .any(|(_, amount, size)| amount.differs(size))
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
            cpu_milli: raise(target.cpu_milli, cpu, 1000.0, milli(self.cpu.size())),
            memory_bytes: raise(target.memory_bytes, memory, 1.0, units(self.memory.size())),
        }
    }

    /// Writes into the note the largest size that the Kubernetes node can give, if the API server
    /// stated it; says whether it did.
    pub(crate) fn learn(&self, note: &mut ResizeNote, allocatable: Amounts) -> bool {
        // The largest size with which the pod requests no more than that, and never less than its present size.
        let largest = |amount: &AppliedAmount, allocatable: Quantity| {
            let room = allocatable.checked_sub(amount.others).unwrap_or_default();
            let limit = room.checked_add(amount.gap).unwrap_or(room);
            limit.max(amount.size())
        };
        let cpu = allocatable.cpu.map(|amount| largest(&self.cpu, amount));
        let memory = allocatable
            .memory
            .map(|amount| largest(&self.memory, amount));
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine million cores")]
        if let Some(cpu) = cpu {
            note.suggested_max_cpu = Some(milli(cpu) as f64 / 1000.0);
        }
        if let Some(memory) = memory {
            note.suggested_max_memory = Some(units(memory));
        }
        cpu.is_some() || memory.is_some()
    }

    fn sizes(&self, target: CpuAndMemory) -> [(&'static str, &AppliedAmount, Quantity); 2] {
        let cpu = Quantity::from_milli(target.cpu_milli);
        let memory = Quantity::from_units(target.memory_bytes);
        [("cpu", &self.cpu, cpu), ("memory", &self.memory, memory)]
    }
}

impl AppliedAmount {
    /// The limit, or the request where there is no limit.
    fn size(&self) -> Quantity {
        self.limit.or(self.request).unwrap_or_default()
    }

    fn request_for(&self, size: Quantity) -> Quantity {
        let request = self.limit.and_then(|_| size.checked_sub(self.gap));
        request.unwrap_or(size)
    }

    fn differs(&self, size: Quantity) -> bool {
        self.limit.is_some_and(|limit| limit != size)
            || self.request != Some(self.request_for(size))
    }
}

fn milli(quantity: Quantity) -> i64 {
    i64::try_from(quantity.nanos() / 1_000_000).unwrap_or(i64::MAX)
}

fn units(quantity: Quantity) -> i64 {
    i64::try_from(quantity.nanos() / 1_000_000_000).unwrap_or(i64::MAX)
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
