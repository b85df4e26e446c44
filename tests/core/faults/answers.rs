//! What meets a call on its way, and a GCS that tells of a part only.

use rayfit_core::reconcile::Effect;
use rayfit_core::simulate::world::World;
use rayfit_core::snapshot::gcs::ClusterResourceState;
use serde_json::{Value, json};

use super::head::restart_gcs;
use super::log::LogEntry;
use super::losses::{self, edit};
use super::trouble::{CallEvent, Troubles};

/// Lets something happen while a call is on its way.
pub(super) fn meet(event: CallEvent, effect: &Effect, troubles: &Troubles, world: &mut World) {
    let text = format!("while {effect} is on its way: {event:?}");
    troubles.log(world.now, LogEntry::Fault(text));
    let pod = pod_of(effect);
    match event {
        CallEvent::PodDeleted => {
            if let Some(pod) = pod {
                losses::remove_named(world, &pod);
            }
        }
        CallEvent::PodFails => {
            if let Some(pod) = pod {
                losses::fail_named(world, &pod);
            }
        }
        CallEvent::NotesRemoved => losses::remove_notes(world),
        CallEvent::ReplicasZero => set_all(world, "replicas", |_| json!(0)),
        CallEvent::ReplicasThree => set_all(world, "replicas", |_| json!(3)),
        CallEvent::ListsEmptied => set_all(world, "scaleStrategy", |_| json!({})),
        CallEvent::MaximaLowered => {
            set_all(world, "maxReplicas", |group| group["minReplicas"].clone());
        }
        CallEvent::GcsRestarts => {
            troubles.borrow_mut().requested = None;
            restart_gcs(world);
        }
    }
}

/// Somebody sets a field of all worker groups.
fn set_all(world: &mut World, field: &str, value: impl Fn(&Value) -> Value) {
    edit(world, |cluster| {
        let groups = cluster.pointer_mut("/spec/workerGroupSpecs");
        for group in groups.and_then(Value::as_array_mut).into_iter().flatten() {
            group[field] = value(group);
        }
    });
}

/// The pod that a call is about: the first one that it lists, where it is about the RayCluster.
fn pod_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::NotePod(patch) | Effect::ResizePod(patch) => Some(patch.pod.clone()),
        Effect::ResizeRaylet(resize) => Some(resize.pod.clone()),
        Effect::Drain(drain) => Some(drain.pod.clone()),
        Effect::PatchCluster(patch) => {
            let mut listed = patch.changes.iter().flat_map(|change| &change.deletions);
            listed.next().map(|deletion| deletion.pod.clone())
        }
        Effect::DeleteCluster { .. } | Effect::Report(_) | Effect::PutError(_) => None,
    }
}

/// Leaves out a part of what waits. Of what is not left out altogether there is one at least.
pub(super) fn tell_in_part(state: &mut ClusterResourceState, percent: u32) {
    for request in &mut state.pending_resource_requests {
        let told = i128::from(request.count) * i128::from(percent);
        request.count = i64::try_from((told + 99) / 100).unwrap_or(i64::MAX);
    }
    let gangs = &mut state.pending_gang_resource_requests;
    gangs.truncate((gangs.len() * percent as usize).div_ceil(100));
}
