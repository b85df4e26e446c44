//! Resizing a pod in place, step by step.

use super::effect::{Effect, PodPatch, RayletResize, Reply};
use super::outcome::Failure;

/// Where the resize of one pod is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodStep {
    raylet: Option<RayletResize>,
    note: Option<PodPatch>,
    resize: Option<PodPatch>,
}

impl PodStep {
    pub(super) fn effect(&self) -> Effect {
        match (&self.raylet, &self.note, &self.resize) {
            (Some(raylet), ..) => Effect::ResizeRaylet(raylet.clone()),
            (None, Some(note), _) => Effect::NotePod(note.clone()),
            (None, None, Some(resize)) => Effect::ResizePod(resize.clone()),
            (None, None, None) => Effect::PutError(String::new()),
        }
    }

    pub(super) fn next(&self, answer: Result<&Reply, &Failure>, now: f64) -> Option<Self> {
        let _ = (answer, now);
        None
    }
}
