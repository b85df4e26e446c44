//! The calls of a scaler: what the API server, KubeRay's objects and the GCS make of them. Before the
//! objects stand the webhook that checks RayClusters, and the quota of their namespace.

use serde_json::Value;

use super::state::World;
use crate::facts::Facts;
use crate::judge::judge;
use crate::policy::Settings;
use crate::policy::settings::RAYFIT_ACCOUNTS;
use crate::quantity::Quantity;
use crate::ray::{Kind, RayObject};
use crate::reconcile::effects::effect::{Drain, DrainKind, PodPatch, RayletResize};
use crate::reconcile::effects::failure::{ApiStatus, GcsKind, PATCH_DOES_NOT_FIT};
use crate::reconcile::{Effect, Failure, Reply};
use crate::simulate::ray::resources::{fixed, float};
use crate::simulate::world::log::LogEntry;
use crate::simulate::world::machines::Notice;
use crate::simulate::world::objects::{fits, left};
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::NodeId;
use crate::snapshot::amounts::Amounts;

impl World {
    /// Does what an effect asks for.
    ///
    /// # Errors
    ///
    /// The API server or the GCS refuses, as the real ones would.
    pub fn perform(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        if effect.is_kubernetes() {
            self.ledger.api_calls += 1;
        }
        match effect {
            Effect::PatchCluster(patch) => {
                self.patch_cluster(&patch.operations).map(|()| Reply::Ok)
            }
            // Its GCS does not say who uses the cluster, so that it never ends by itself.
            Effect::DeleteCluster(_) => Err(refused(405, "no cluster is deleted here", &[])),
            Effect::NotePod(patch) => self.note_pod(patch),
            Effect::ResizePod(patch) => self.resize_pod(patch),
            Effect::ResizeRaylet(resize) => self.resize_raylet(resize),
            Effect::Drain(drain) => Ok(self.drain(drain)),
            Effect::Report(_) | Effect::PutError(_) => Ok(Reply::Ok),
        }
    }

    /// Patches the RayCluster.
    ///
    /// # Errors
    ///
    /// A test of the patch fails, or the groups cannot be read afterwards, which admission refuses.
    pub fn patch_cluster(&mut self, patch: &json_patch::Patch) -> Result<(), Failure> {
        let mut patched = self.cluster.object().clone();
        json_patch::patch(&mut patched, patch)
            .map_err(|_| refused(422, PATCH_DOES_NOT_FIT, &[]))?;
        if let Some(why) = self.denial(&patched, RAYFIT_ACCOUNTS[0]) {
            return Err(refused(
                403,
                &format!("admission webhook denied the request: {why}"),
                &[],
            ));
        }
        self.set_cluster(patched)
            .map_err(|error| refused(422, &error.to_string(), &["FieldValueInvalid"]))
    }

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

    fn note_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
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

    fn resize_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
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
            let amounts = |part: &str| -> Amounts {
                let at = change.pointer(&format!("/resources/{part}"));
                let get = |name: &str| Quantity::from_json(at?.get(name)?).ok();
                Amounts {
                    cpu: get("cpu"),
                    memory: get("memory"),
                }
            };
            let resources = &mut container.resources;
            // What a strategic merge patch does not name stays as it is.
            resources.requests = amounts("requests").or(resources.requests);
            resources.limits = amounts("limits").or(resources.limits);
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

    /// Why the webhook denies a change of the RayCluster, if it is there and does. `user` is who changes
    /// it.
    pub(super) fn denial(&mut self, changed: &Value, user: &str) -> Option<String> {
        if !self.settings.is_judged {
            return None;
        }
        let object = RayObject::of_kind(Kind::RayCluster, changed.as_object()?);
        let stored = self.cluster.object().as_object()?;
        let old = RayObject::of_kind(Kind::RayCluster, stored);
        let (facts, settings) = (Facts::default(), Settings::default());
        let verdict = judge(&object, Some(&old), Some(user), &facts, &settings);
        let denied = verdict.denied.first()?;
        let why = format!("{} at {}: {}", denied.rule, denied.path, denied.problem);
        let user = user.to_owned();
        self.log.add(self.now, || LogEntry::Denied {
            user,
            why: why.clone(),
        });
        Some(why)
    }

    /// The Ray node with that id, if it is alive.
    fn ray_node(&self, id: NodeId) -> Option<usize> {
        let mut living = self.ray.living();
        living
            .find(|(_, node)| node.id == id)
            .map(|(number, _)| number)
    }

    fn resize_raylet(&mut self, resize: &RayletResize) -> Result<Reply, Failure> {
        self.ledger.gcs_calls += 1;
        let node = self.ray_node(resize.node_id).ok_or_else(|| Failure::Gcs {
            kind: GcsKind::NotFound,
            message: "NotFound: no such node".to_owned(),
        })?;
        let mut sizes = Vec::new();
        if let Some(milli) = resize.cpu_milli {
            // Ray counts in ten-thousandths, Kubernetes in thousandths.
            sizes.push(("CPU", milli.saturating_mul(10)));
        }
        #[expect(clippy::cast_precision_loss, reason = "bytes")]
        if let Some(bytes) = resize.memory_bytes {
            sizes.push(("memory", fixed(bytes as f64)));
        }
        let total = self.ray.resize(node, &sizes, self.now);
        let amount = |name: &str| Some(float(total.get(self.ray.names.find(name)?)));
        let reply = Reply::RayletTotals {
            cpu: amount("CPU"),
            memory: amount("memory"),
        };
        self.ray_changed();
        Ok(reply)
    }

    fn drain(&mut self, drain: &Drain) -> Reply {
        self.ledger.gcs_calls += 1;
        // The GCS accepts a drain of a node that it does not know or that has died.
        let Some(node) = self.ray_node(drain.node_id) else {
            return Reply::DrainAccepted;
        };
        if drain.kind == DrainKind::Stop {
            if let Some(pod) = self.ray.stop(node) {
                self.after(self.settings.ray_stop_s, WorldEvent::RayEnds(pod));
            }
        } else if !self.ray.drain(node, drain.kind == DrainKind::Idle) {
            return Reply::DrainRefused;
        }
        self.ray_changed();
        Reply::DrainAccepted
    }
}

/// What the quota's admission says. (`k8s.io/apiserver`, `resourcequota/controller.go`.)
const EXCEEDED_QUOTA: &str = "exceeded quota: cores";

fn node_capacity(wanted: Amounts, allocatable: Amounts) -> Failure {
    let cpu = |amounts: Amounts| amounts.cpu.unwrap_or_default().ceil_milli();
    let memory = |amounts: Amounts| amounts.memory.unwrap_or_default().ceil_units();
    let mut parts = Vec::new();
    if cpu(wanted) > cpu(allocatable) {
        let (wanted, allocatable) = (cpu(wanted), cpu(allocatable));
        parts.push(format!(
            "cpu, requested: {wanted}, allocatable: {allocatable}"
        ));
    }
    if memory(wanted) > memory(allocatable) {
        let (wanted, allocatable) = (memory(wanted), memory(allocatable));
        parts.push(format!(
            "memory, requested: {wanted}, allocatable: {allocatable}"
        ));
    }
    let message = format!(
        "node didn't have enough allocatable resources: {}",
        parts.join("; ")
    );
    refused(403, &message, &["NodeCapacity"])
}

fn refused(code: u16, message: &str, causes: &[&str]) -> Failure {
    Failure::Api(ApiStatus {
        code,
        message: message.to_owned(),
        causes: causes.iter().map(|cause| (*cause).to_owned()).collect(),
        ..ApiStatus::default()
    })
}
