//! The calls of a scaler: what the API server and the GCS make of them.
//!
//! Effects come in, and go out answered, or refused as by the real ones. Before the objects stands what the API
//! server itself checks of pods; a test may put a webhook and a quota there. Invariant: what is refused has
//! changed nothing.

mod gcs;
mod pods;
mod refusal;

use std::rc::Rc;

use self::refusal::refused;
use super::state::{World, WrongAnswer};
use crate::policy::settings::RAYFIT_ACCOUNTS;
use crate::reconcile::effects::failure::{GcsKind, PATCH_DOES_NOT_FIT};
use crate::reconcile::{Effect, Failure, Reply};

impl World {
    /// Makes a call of the scaler.
    ///
    /// # Errors
    ///
    /// The called API refuses, as the real one would, or does not answer.
    pub fn call(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        let disturbance = Rc::clone(&self.disturbance);
        let (is_done, result) = if !effect.is_kubernetes() && disturbance.is_gcs_away() {
            let failure = Failure::Gcs {
                kind: GcsKind::Unreachable,
                message: "played: deadline exceeded".to_owned(),
            };
            (false, Err(failure))
        } else {
            let wrong = disturbance.answer(Some(effect));
            self.answer(wrong, |world| world.perform(effect))
        };
        disturbance.called(self.now, effect, is_done, &result);
        result
    }

    /// Writes the hand-over record.
    ///
    /// # Errors
    ///
    /// The same as of [`World::call`].
    pub fn claim(&mut self, patch: &json_patch::Patch) -> Result<(), Failure> {
        let wrong = self.disturbance.answer(None);
        let (_, result) = self.answer(wrong, |world| world.patch_cluster(patch));
        self.disturbance.claimed(self.now, &result);
        result
    }

    /// Makes a call, unless its wrong answer says otherwise. Returns whether it was made, and the answer.
    fn answer<T>(
        &mut self,
        wrong: Option<WrongAnswer>,
        call: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> (bool, Result<T, Failure>) {
        let Some(wrong) = wrong else {
            let result = call(self);
            return (result.is_ok(), result);
        };
        let is_done = wrong.is_done && call(self).is_ok();
        (is_done, Err(wrong.failure))
    }

    /// Does what an effect asks for.
    fn perform(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        if effect.is_kubernetes() {
            self.ledger.api_calls += 1;
        }
        match effect {
            Effect::PatchCluster(patch) => {
                self.patch_cluster(&patch.operations).map(|()| Reply::Ok)
            }
            // Its GCS does not say who uses the cluster, so that it never ends by itself.
            Effect::DeleteCluster { .. } => Err(refused(405, "no cluster is deleted here", &[])),
            Effect::NotePod(patch) => self.note_pod(patch),
            Effect::ResizePod(patch) => self.resize_pod(patch),
            Effect::ResizeRaylet(resize) => self.resize_raylet(resize),
            Effect::Drain(drain) => Ok(self.drain(drain)),
            // Only people read these, and nothing here follows from them.
            Effect::Report(_) | Effect::PutError(_) => Ok(Reply::Ok),
        }
    }

    /// Patches the RayCluster. Admission refuses a patch of which a test fails, and one after which groups
    /// cannot be read.
    fn patch_cluster(&mut self, patch: &json_patch::Patch) -> Result<(), Failure> {
        let stored = self.cluster.object();
        let mut patched = stored.clone();
        json_patch::patch(&mut patched, patch)
            .map_err(|_| refused(422, PATCH_DOES_NOT_FIT, &[]))?;
        let user = RAYFIT_ACCOUNTS[0];
        if let Some(why) = (self.disturbance).denial(self.now, stored, &patched, user) {
            let message = format!("admission webhook denied the request: {why}");
            return Err(refused(403, &message, &[]));
        }
        self.set_cluster(patched)
            .map_err(|error| refused(422, &error, &["FieldValueInvalid"]))
    }
}
