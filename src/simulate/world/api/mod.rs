//! The calls of a scaler: what the API server and the GCS make of them.
//!
//! Effects come in, and go out answered, or refused as by the real ones. Before the objects stand the
//! webhook that checks RayClusters, the quota of their namespace, and what the API server itself checks
//! of pods. Invariant: what is refused has changed nothing.

mod gcs;
mod pods;
mod refusal;

use std::rc::Rc;

use serde_json::Value;

use self::refusal::{no_answer_of_gcs, refused};
use super::state::World;
use crate::facts::Facts;
use crate::judge::judge;
use crate::policy::Settings;
use crate::policy::settings::RAYFIT_ACCOUNTS;
use crate::ray::{Kind, RayObject};
use crate::reconcile::effects::failure::PATCH_DOES_NOT_FIT;
use crate::reconcile::{Effect, Failure, Reply};
use crate::simulate::world::disturbance::WrongAnswer;
use crate::simulate::world::log::LogEntry;

/// The user who changes objects by hand.
const PEOPLE: &str = "people";

impl World {
    /// Makes a call of the scaler.
    ///
    /// # Errors
    ///
    /// The called API refuses, as the real one would, or does not answer.
    pub fn call(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        let disturbance = Rc::clone(&self.disturbance);
        let (is_done, result) = if !effect.is_kubernetes() && self.is_gcs_away() {
            (false, Err(no_answer_of_gcs()))
        } else {
            let wrong = disturbance.answer(Some(effect));
            self.answer(wrong, |world| world.perform(effect))
        };
        disturbance.answered(&result);
        self.log.add(self.now, || LogEntry::Called {
            effect: Box::new(effect.clone()),
            is_done,
            result: result.clone(),
        });
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
        self.log.add(self.now, || LogEntry::Claimed(result.clone()));
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
            Effect::DeleteCluster { .. } => Err(refused(405, "no cluster is deleted here", &[])),
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

    /// The people's change of the RayCluster. What admission refuses changes nothing.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut edited = self.cluster.object().clone();
        change(&mut edited);
        if edited != *self.cluster.object() && self.denial(&edited, PEOPLE).is_none() {
            let _ = self.set_cluster(edited);
        }
    }

    /// The webhook's reason to deny a change of the RayCluster by `user`, if it is there and does.
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
