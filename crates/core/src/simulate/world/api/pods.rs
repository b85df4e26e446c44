//! The patches of pods: their annotations, and their sizes.

use serde::Deserialize;
use serde_json::Value;

use super::refusal::refused;
use crate::ray::resource::Amounts;
use crate::reconcile::effects::effect::PodPatch;
use crate::reconcile::{Failure, Reply};
use crate::simulate::world::World;
use crate::simulate::world::machines::Notice;
use crate::simulate::world::objects::{fits, remainder};
use crate::simulate::world::pod_level;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::pod_object::Resources;

impl World {
    /// The pod that a patch is for, if it is still the same one.
    fn patched_pod(&self, patch: &PodPatch) -> Result<usize, Failure> {
        let pod = self.pod_named(&patch.pod);
        let pod =
            pod.ok_or_else(|| refused(404, &format!("pods {:?} not found", patch.pod), &[]))?;
        let uid = patch.body.pointer("/metadata/uid").and_then(Value::as_str);
        let stored = self.machines.pods[pod].object.metadata.uid.as_deref();
        // The API server takes a UID in a patch for a change of the UID, and refuses that.
        // (`ValidateObjectMetaUpdate`.)
        if uid.is_some() && uid != stored {
            return Err(refused(
                422,
                "metadata.uid: Invalid value: field is immutable",
                &["FieldValueInvalid"],
            ));
        }
        Ok(pod)
    }

    pub(super) fn note_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
        let pod = self.patched_pod(patch)?;
        let annotations = patch.body.pointer("/metadata/annotations");
        let stored = &mut self.machines.pods[pod].object.metadata.annotations;
        let mut is_changed = false;
        let mut note = |key: &str, stored: &mut Option<String>| {
            let value = annotations.and_then(|all| all.get(key));
            if let Some(value) = value {
                *stored = value.as_str().map(str::to_owned);
                is_changed = true;
            }
            value.is_some()
        };
        note(crate::plan::STATUS_ANNOTATION, &mut stored.resize_status);
        note("rayfit.dev/holds-node", &mut stored.holds_node);
        let is_marked = note("karpenter.sh/do-not-disrupt", &mut stored.do_not_disrupt);
        if is_changed {
            self.objects_changed();
        }
        if is_marked {
            // Without the mark Karpenter may empty the node.
            self.reconsider_room();
        }
        Ok(Reply::Ok)
    }

    /// The refusal of a size that the node of a pod could never hold: from Kubernetes 1.36 on the API server
    /// itself refuses that. (`plugin/pkg/admission/podresize`.)
    fn beyond_node(&self, number: usize, wanted: Amounts) -> Option<Failure> {
        let allocatable = self.allocatable_of(number)?;
        if fits(wanted, allocatable) {
            return None;
        }
        let milli = |amounts: Amounts| amounts.cpu.unwrap_or_default().ceil_milli();
        let bytes = |amounts: Amounts| amounts.memory.unwrap_or_default().ceil_units();
        let short = [
            ("cpu", milli(wanted), milli(allocatable)),
            ("memory", bytes(wanted), bytes(allocatable)),
        ];
        let short = short.into_iter().filter(|(_, wanted, most)| wanted > most);
        let short = short.map(|(name, wanted, most)| {
            format!("{name}, requested: {wanted}, allocatable: {most}")
        });
        let short = short.collect::<Vec<_>>().join("; ");
        let message = format!("node didn't have enough allocatable resources: {short}");
        Some(refused(403, &message, &["NodeCapacity"]))
    }

    pub(super) fn resize_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
        let number = self.patched_pod(patch)?;
        let mut resized = self.machines.pods[number].clone();
        let changes = patch
            .body
            .pointer("/spec/containers")
            .and_then(Value::as_array);
        for change in changes.into_iter().flatten() {
            let name = change["name"].as_str().unwrap_or_default();
            let mut containers = resized.object.spec.containers.iter_mut();
            let Some(container) = containers.find(|container| container.name == name) else {
                return Err(refused(
                    422,
                    "spec.containers: Forbidden: may not add",
                    &["FieldValueForbidden"],
                ));
            };
            // Fields that a strategic merge patch does not name stay as they are.
            container.resources = merged(container.resources, change.get("resources"));
        }
        let spec = &mut resized.object.spec;
        spec.resources = merged(spec.resources, patch.body.pointer("/spec/resources"));
        let before = &self.machines.pods[number].object.spec;
        if let Some(why) = pod_level::refusal(before, spec) {
            return Err(refused(422, &why, &["FieldValueInvalid"]));
        }
        if let Some(refusal) = self.beyond_node(number, resized.spec_requests()) {
            return Err(refusal);
        }
        // The API server leaves the generation as it is then, so that the kubelet has nothing to
        // do.
        if resized.object.spec == self.machines.pods[number].object.spec {
            return Ok(Reply::Ok);
        }
        let (wanted, before) = (
            resized.spec_requests(),
            self.machines.pods[number].spec_requests(),
        );
        // A quota counts what the spec asks for, also before the kubelet has given it.
        let more = remainder(wanted, before).cpu.unwrap_or_default();
        let free = self.disturbance.quota_left(self);
        if wanted.cpu > before.cpu && free.is_some_and(|free| more > free) {
            // (`k8s.io/apiserver`, `resourcequota/controller.go`.)
            return Err(refused(403, "exceeded quota: cores", &[]));
        }
        let generation = resized.object.metadata.generation.unwrap_or(0) + 1;
        resized.object.metadata.generation = Some(generation);
        self.machines.pods[number] = resized;
        self.after(self.settings.call_s, WorldEvent::Kubelet(number));
        self.objects_changed();
        // The scheduler counts the larger size at once, whether or not the kubelet can give it.
        self.tell_others(self.number, Notice::Loads);
        Ok(Reply::Ok)
    }
}

/// The amounts with those that a patch names.
fn merged(amounts: Resources, patch: Option<&Value>) -> Resources {
    let named = patch.and_then(|patch| Resources::deserialize(patch).ok());
    let named = named.unwrap_or_default();
    Resources {
        requests: named.requests.or(amounts.requests),
        limits: named.limits.or(amounts.limits),
    }
}
