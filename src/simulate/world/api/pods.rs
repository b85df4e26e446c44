//! The patches of pods: their annotations, and their sizes.

use serde_json::Value;

use super::refusal::{EXCEEDED_QUOTA, node_capacity, refused};
use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::reconcile::effects::effect::PodPatch;
use crate::reconcile::{Failure, Reply};
use crate::simulate::world::World;
use crate::simulate::world::machines::Notice;
use crate::simulate::world::objects::{fits, left};
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
        let note = annotations.and_then(|all| all.get(crate::plan::STATUS_ANNOTATION));
        if let Some(note) = note {
            let stored = &mut self.machines.pods[pod]
                .object
                .metadata
                .annotations
                .resize_status;
            *stored = note.as_str().map(str::to_owned);
            self.objects_changed();
        }
        if let Some(holds) = annotations.and_then(|all| all.get("rayfit.dev/holds-node")) {
            let stored = &mut self.machines.pods[pod]
                .object
                .metadata
                .annotations
                .holds_node;
            *stored = holds.as_str().map(str::to_owned);
            self.objects_changed();
        }
        let mark = annotations.and_then(|all| all.get("karpenter.sh/do-not-disrupt"));
        if let Some(mark) = mark {
            let stored = &mut self.machines.pods[pod].object.metadata.annotations;
            stored.do_not_disrupt = mark.as_str().map(str::to_owned);
            self.objects_changed();
            // Without the mark Karpenter may empty the node.
            self.reconsider_room();
        }
        Ok(Reply::Ok)
    }

    pub(super) fn resize_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
        let number = self.patched_pod(patch)?;
        let mut resized = self.machines.pods[number].clone();
        let changes = patch
            .body
            .pointer("/spec/containers")
            .and_then(Value::as_array);
        for change in changes.into_iter().flatten() {
            let name = change
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
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
        // From Kubernetes 1.36 on the API server itself refuses what the node could never hold.
        // (`plugin/pkg/admission/podresize`.)
        if let Some(allocatable) = self.allocatable_of(number)
            && !fits(resized.wanted(), allocatable)
        {
            return Err(node_capacity(resized.wanted(), allocatable));
        }
        // The API server leaves the generation as it is then, so that the kubelet has nothing to
        // do.
        if resized.object.spec == self.machines.pods[number].object.spec {
            return Ok(Reply::Ok);
        }
        let (wanted, before) = (resized.wanted(), self.machines.pods[number].wanted());
        // A quota counts what the spec asks for, also before the kubelet has given it.
        if wanted.cpu > before.cpu && self.exceeds_quota(left(wanted, before).cpu) {
            return Err(refused(403, EXCEEDED_QUOTA, &[]));
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
    let named = |part: &str| -> Amounts {
        let get = |name: &str| Quantity::from_json(patch?.get(part)?.get(name)?).ok();
        Amounts {
            cpu: get("cpu"),
            memory: get("memory"),
        }
    };
    Resources {
        requests: named("requests").or(amounts.requests),
        limits: named("limits").or(amounts.limits),
    }
}
