//! The calls of a scaler: what the API server and the GCS make of them.
//!
//! Effects come in, and go out answered, or refused as by the real ones. Before the objects stand the
//! webhook that checks RayClusters, the quota of their namespace, and what the API server itself checks
//! of pods. Invariant: what is refused has changed nothing.

mod gcs;
mod pods;
mod refusal;

use serde_json::Value;

use self::refusal::refused;
use super::state::World;
use crate::facts::Facts;
use crate::judge::judge;
use crate::policy::Settings;
use crate::policy::settings::RAYFIT_ACCOUNTS;
use crate::ray::{Kind, RayObject};
use crate::reconcile::effects::failure::PATCH_DOES_NOT_FIT;
use crate::reconcile::{Effect, Failure, Reply};
use crate::simulate::world::log::LogEntry;

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

    /// Why the webhook denies a change of the RayCluster, if it is there and does. `user` is who changes
    /// it.
    pub(in crate::simulate::world) fn denial(
        &mut self,
        changed: &Value,
        user: &str,
    ) -> Option<String> {
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
}
