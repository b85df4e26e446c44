//! Unobserved changes: what the API server accepted for a pod and the watch of pods does not show
//! yet, and the sizes that raylets were told and the GCS does not show yet.
//!
//! A plan is made of pods as they were observed. While a watch lags or hangs, each look would ask
//! anew for what has been done. So a pod that was patched is left alone until it is observed as
//! accepted, or until the patch is so old that somebody else must have changed the pod since.

use std::collections::BTreeMap;

use serde::Deserialize as _;

use crate::plan::STATUS_ANNOTATION;
use crate::ray::resource::Amounts;
use crate::reconcile::effects::chain::Done;
use crate::reconcile::effects::effect::{Effect, PodPatch, RayletResize};
use crate::reconcile::effects::hold::HOLDS;
use crate::reconcile::memory::backoff::SKEW_S;
use crate::seconds::WATCH_LAG_S;
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_object::PodContainer;

/// Seconds for which a patch that is not observed holds up further ones.
// As long as the watch may not show it, a raylet would be told a size that its pod no longer has.
const LONGEST_S: f64 = WATCH_LAG_S;

/// Seconds for which a raylet that has taken a size is not told the same again; twice as long each time that it is.
// The GCS hears of it within one of its rounds through all nodes. One that goes on saying something else is wrong
// about it.
const TOLD_S: f64 = 5.0;

/// The most seconds for which it is not told the same again.
const TOLD_LONGEST_S: f64 = 80.0;

/// The changes that may not be observed yet, by the pod's name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Unobserved {
    patched: BTreeMap<String, Accepted>,
    pub(super) sizes: BTreeMap<String, RayletSize>,
}

/// The size that a raylet was told last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RayletSize {
    size: RayletResize,
    /// The time, in seconds since 1970.
    at: f64,
    /// Seconds for which it is not told the same again.
    rest_s: f64,
}

/// The state of a pod that the API server last accepted.
#[derive(Debug, Clone, Default, PartialEq)]
struct Accepted {
    /// The time, in seconds since 1970.
    at: f64,
    /// The note about resizes.
    note: Option<String>,
    /// The marks for node autoscalers: written or taken back, if that was asked.
    holds: Option<bool>,
    /// The containers, with the resources that were asked for.
    containers: Vec<PodContainer>,
}

impl Unobserved {
    /// The time until which the pod is left alone, in seconds since 1970; `None` if it is observed
    /// as it was patched.
    pub(crate) fn until(&self, pod: &Pod<'_>, now: f64) -> Option<f64> {
        let accepted = self.patched.get(pod.name)?;
        if !is_young(accepted.at, LONGEST_S, now) {
            return None;
        }
        let annotations = &pod.object.metadata.annotations;
        // The pod may have amounts that were not asked for.
        let has_all = |current: Amounts, target: Amounts| target.or(current) == current;
        let has = |target: &PodContainer| {
            let mut containers = pod.object.spec.containers.iter();
            let container = containers.find(|current| current.name == target.name);
            container.is_some_and(|current| {
                has_all(current.resources.requests, target.resources.requests)
                    && has_all(current.resources.limits, target.resources.limits)
            })
        };
        let is_held = annotations.holds_node.is_some();
        let is_shown = accepted.holds.is_none_or(|holds| holds == is_held)
            && (accepted.note.is_none() || accepted.note == annotations.resize_status)
            && accepted.containers.iter().all(has);
        (!is_shown).then_some(accepted.at + LONGEST_S)
    }

    /// Returns whether the raylet has just taken this size.
    pub(crate) fn has_size(&self, size: &RayletResize, now: f64) -> bool {
        let raylet = self.sizes.get(&size.pod);
        raylet.is_some_and(|raylet| raylet.size == *size && is_young(raylet.at, raylet.rest_s, now))
    }

    /// Takes in what came of a round.
    pub(crate) fn note(&mut self, done: &[Done], now: f64) {
        self.patched
            .retain(|_, accepted| is_young(accepted.at, LONGEST_S, now));
        // For longer than it holds: a raylet that says something else again is told less and less
        // often.
        self.sizes
            .retain(|_, raylet| is_young(raylet.at, 2.0 * raylet.rest_s, now));
        for done in done {
            match &done.effect {
                // A patch that was not answered may have been accepted all the same, and then the
                // pod is never observed as it was patched before.
                Effect::NotePod(patch) | Effect::ResizePod(patch) if done.result.is_err() => {
                    self.patched.remove(&patch.pod);
                }
                Effect::NotePod(patch) => {
                    let note = patch.body.pointer("/metadata/annotations");
                    let holds = note.and_then(|all| all.get(HOLDS));
                    if let Some(holds) = holds {
                        self.of(patch, now).holds = Some(holds.is_string());
                        continue;
                    }
                    let note = note.and_then(|all| all.get(STATUS_ANNOTATION)?.as_str());
                    self.of(patch, now).note = note.map(str::to_owned);
                }
                Effect::ResizePod(patch) => {
                    let containers = patch.body.pointer("/spec/containers");
                    let containers = containers.map(Vec::<PodContainer>::deserialize);
                    let containers = containers.and_then(Result::ok).unwrap_or_default();
                    self.of(patch, now).containers = containers;
                }
                Effect::ResizeRaylet(size) if done.result.is_ok() => {
                    let previous = self
                        .sizes
                        .get(&size.pod)
                        .filter(|raylet| raylet.size == *size);
                    let raylet = RayletSize {
                        size: size.clone(),
                        at: now,
                        rest_s: previous
                            .map_or(TOLD_S, |raylet| (2.0 * raylet.rest_s).min(TOLD_LONGEST_S)),
                    };
                    self.sizes.insert(size.pod.clone(), raylet);
                }
                _ => {}
            }
        }
    }

    fn of(&mut self, patch: &PodPatch, now: f64) -> &mut Accepted {
        let accepted = self.patched.entry(patch.pod.clone()).or_default();
        accepted.at = now;
        accepted
    }
}

/// Checks that less than `longest` seconds have passed since `at`.
fn is_young(at: f64, longest: f64, now: f64) -> bool {
    // A time later than now comes from a clock that has been set back since.
    at <= now + SKEW_S && now < at + longest
}

#[cfg(test)]
mod tests {
    use crate::snapshot::pod_object::PodObject;
    use serde_json::json;

    use super::*;
    use crate::reconcile::{EffectTarget, Failure, Reply};

    fn pod(cpu: &str, note: &str) -> PodObject {
        serde_json::from_value(json!({
            "metadata": {"name": "w", "annotations": {STATUS_ANNOTATION: note}},
            "spec": {"containers": [
                {"name": "ray", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}},
            ]},
        }))
        .unwrap()
    }

    fn accepted() -> [Done; 2] {
        let patch = |body| PodPatch {
            pod: "w".to_owned(),
            body,
        };
        let container = json!({"name": "ray", "resources": {"requests": {"cpu": "2000m"}}});
        [
            Effect::NotePod(patch(
                json!({"metadata": {"annotations": {STATUS_ANNOTATION: "new"}}}),
            )),
            Effect::ResizePod(patch(json!({"spec": {"containers": [container]}}))),
        ]
        .map(|effect| Done {
            about: EffectTarget::Pod("w".to_owned()),
            effect,
            result: Ok(Reply::Ok),
        })
    }

    #[test]
    fn a_pod_is_left_alone_until_it_is_observed_as_patched() {
        let mut unobserved = Unobserved::default();
        let until = |unobserved: &Unobserved, pod: &PodObject, now| {
            unobserved.until(&Pod::of(pod), now).is_some()
        };
        assert!(!until(&unobserved, &pod("1", "old"), 100.0));
        unobserved.note(&accepted(), 100.0);
        assert!(until(&unobserved, &pod("1", "old"), 101.0));
        assert!(until(&unobserved, &pod("1", "new"), 101.0), "half of it");
        assert!(!until(&unobserved, &pod("2", "new"), 101.0), "observed");
        assert!(until(&unobserved, &pod("1", "old"), 254.0));
        assert!(!until(&unobserved, &pod("1", "old"), 255.0), "too old");
        assert!(!until(&unobserved, &pod("1", "old"), 90.0), "set back");
        unobserved.note(&[], 255.0);
        assert_eq!(unobserved, Unobserved::default(), "forgotten");
    }

    #[test]
    fn a_raylet_is_told_a_size_once() {
        let size = |cpu_milli| RayletResize {
            pod: "w".to_owned(),
            node_id: "11".repeat(28).parse().unwrap(),
            cpu_milli: Some(cpu_milli),
            memory_bytes: None,
        };
        let tell = |result| Done {
            about: EffectTarget::Pod("w".to_owned()),
            effect: Effect::ResizeRaylet(size(2000)),
            result,
        };
        let mut unobserved = Unobserved::default();
        let failed = tell(Err(Failure::NoAnswer(String::new())));
        unobserved.note(&[failed], 100.0);
        assert!(!unobserved.has_size(&size(2000), 100.0));
        unobserved.note(&[tell(Ok(Reply::Ok))], 100.0);
        assert!(unobserved.has_size(&size(2000), 101.0));
        assert!(!unobserved.has_size(&size(3000), 101.0), "another size");
        assert!(!unobserved.has_size(&size(2000), 105.0), "it did not last");
        assert!(!unobserved.has_size(&size(2000), 90.0), "set back");
        unobserved.note(&[tell(Ok(Reply::Ok))], 105.0);
        assert!(unobserved.has_size(&size(2000), 114.0), "told twice");
        assert!(!unobserved.has_size(&size(2000), 115.0));
        unobserved.note(&[], 125.0);
        assert_eq!(unobserved, Unobserved::default(), "forgotten");
    }

    #[test]
    fn what_was_refused_holds_up_nothing() {
        let mut unobserved = Unobserved::default();
        let refused = accepted().map(|done| Done {
            result: Err(Failure::NoAnswer(String::new())),
            ..done
        });
        unobserved.note(&refused, 100.0);
        assert_eq!(unobserved, Unobserved::default());
        let [note, resize] = accepted();
        let unanswered = Done {
            result: Err(Failure::NoAnswer(String::new())),
            ..note.clone()
        };
        unobserved.note(&[note, resize, unanswered], 100.0);
        assert_eq!(
            unobserved,
            Unobserved::default(),
            "which note it has is not known"
        );
    }
}
