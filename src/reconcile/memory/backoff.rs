//! Back-offs: for how long work that failed is not tried again.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use crate::reconcile::effects::effect::{Effect, EffectClass, EffectTarget};
use crate::reconcile::effects::failure::Meaning;
use crate::reconcile::settings::BackoffSettings;
use crate::seconds::Retry;

/// The most back-offs that are kept; beyond that, those that end first are forgotten.
const KEPT: usize = 4096;

/// The factor by which the first back-off is longer after a refusal than after another failure.
const PATIENCE: f64 = 20.0;

/// The largest part of a back-off by which jitter makes it shorter or longer.
const SPREAD: f64 = 0.25;

/// The lost races in a row after which one is backed off: an object changes meanwhile once or twice,
/// and not for ever.
const RACES: u32 = 2;

/// Seconds by which a clock may go back without voiding what was remembered by it.
pub(crate) const SKEW_S: f64 = 1.0;

/// The back-offs that hold, by target and class of work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits(BTreeMap<(EffectTarget, EffectClass), Wait>);

/// One back-off.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// The number of failures in a row.
    pub failures: u32,
    /// The beginning of the back-off, in seconds since 1970.
    pub from: f64,
    /// The end of the back-off, in seconds since 1970.
    pub until: f64,
    /// The reason, for people.
    pub why: String,
    /// The kind of effect that failed; `None` if nothing did.
    kind: Option<EffectKind>,
}

/// The kind of an effect.
type EffectKind = Discriminant<Effect>;

impl Waits {
    /// The back-off that holds now, if there is one.
    pub fn of(&self, about: &EffectTarget, task: EffectClass, now: f64) -> Option<&Wait> {
        let wait = self.0.get(&(about.clone(), task))?;
        // One that begins later was recorded by a clock that has been set back since, and would
        // last as much longer.
        (wait.from <= now + SKEW_S && now < wait.until).then_some(wait)
    }

    /// Records a failure. `jitter` is from 0 to 1 and spreads the back-offs.
    pub(crate) fn failed(
        &mut self,
        key: (EffectTarget, EffectClass),
        failed: &FailedTry,
        settings: &BackoffSettings,
    ) {
        let first = match failed.meaning {
            // The pod is gone, or its limit is known from now on: no time would change that.
            Meaning::Gone | Meaning::TooLarge(_) => return,
            // A quota, a limit range or a permission stays as it is until somebody changes it.
            Meaning::Refused | Meaning::Forbidden => settings.first_s * PATIENCE,
            Meaning::Stale | Meaning::Busy { .. } | Meaning::Transient => settings.first_s,
        };
        let failures = self.0.get(&key).map_or(0, |wait| wait.failures) + 1;
        let free = if failed.meaning == Meaning::Stale {
            RACES
        } else {
            0
        };
        let retry = Retry {
            first_s: first,
            longest_s: settings.longest_s,
        };
        let whole_s = match failures.saturating_sub(free) {
            0 => 0.0,
            counted => retry.wait_s(counted),
        };
        // A thousand clusters must not try again at the same moment.
        let spread = 1.0 + SPREAD * (2.0 * failed.jitter.clamp(0.0, 1.0) - 1.0);
        let asked = match failed.meaning {
            Meaning::Busy { retry_after_s } => retry_after_s.unwrap_or_default(),
            _ => 0.0,
        };
        // The wait that the API server asks for comes last: neither the longest back-off nor jitter
        // shortens it.
        let wait_s = (whole_s * spread).max(asked);
        let wait = Wait {
            failures,
            from: failed.now,
            until: failed.now + wait_s,
            why: failed.why.clone(),
            kind: Some(failed.kind),
        };
        self.0.insert(key, wait);
        self.bound();
    }

    /// Backs off the work on a target for so many seconds.
    pub(crate) fn delay(
        &mut self,
        key: (EffectTarget, EffectClass),
        now: f64,
        seconds: f64,
        why: &str,
    ) {
        let wait = Wait {
            failures: 0,
            from: now,
            until: now + seconds,
            why: why.to_owned(),
            kind: None,
        };
        self.0.insert(key, wait);
        self.bound();
    }

    /// Forgets the failures of work that succeeded. Between two resizes of a pod that fail, its note is
    /// written and its raylet told, which does not make up for them.
    pub(crate) fn went_well(&mut self, key: &(EffectTarget, EffectClass), effect: &Effect) {
        let failed = self.0.get(key).and_then(|wait| wait.kind);
        if failed.is_none_or(|kind| kind == discriminant(effect)) {
            self.0.remove(key);
        }
    }

    /// Forgets back-offs that ended so long ago that a new failure counts as a first one.
    pub(crate) fn forget_old(&mut self, now: f64, settings: &BackoffSettings) {
        self.0
            .retain(|_, wait| wait.until + 2.0 * settings.longest_s > now);
    }

    /// Forgets the back-offs of what is asked of a GCS only.
    pub(crate) fn forget_gcs(&mut self) {
        let kubernetes = [EffectClass::Replicas, EffectClass::End, EffectClass::Resize];
        self.0.retain(|(_, class), _| kubernetes.contains(class));
    }

    fn bound(&mut self) {
        while self.0.len() > KEPT {
            let ends = |(_, wait): &(&(EffectTarget, EffectClass), &Wait)| wait.until;
            let first = self
                .0
                .iter()
                .min_by(|one, other| ends(one).total_cmp(&ends(other)));
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                return;
            };
            self.0.remove(&key);
        }
    }
}

/// A failure that is to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct FailedTry {
    pub(crate) meaning: Meaning,
    /// The kind of effect that failed.
    pub(crate) kind: EffectKind,
    /// The reason, for people.
    pub(crate) why: String,
    /// The time of the failure, in seconds since 1970.
    pub(crate) now: f64,
    /// The jitter, from 0 to 1.
    pub(crate) jitter: f64,
}

#[cfg(test)]
mod tests {
    use crate::reconcile::effects::effect::PodPatch;
    use crate::reconcile::memory::backoff::*;

    fn key() -> (EffectTarget, EffectClass) {
        (EffectTarget::Pod("a".to_owned()), EffectClass::Resize)
    }

    fn patch() -> PodPatch {
        PodPatch {
            pod: "a".to_owned(),
            body: serde_json::json!({}),
        }
    }

    fn resize() -> Effect {
        Effect::ResizePod(patch())
    }

    fn failed(meaning: Meaning, now: f64) -> FailedTry {
        FailedTry {
            meaning,
            kind: discriminant(&resize()),
            why: "it failed".to_owned(),
            now,
            jitter: 0.5,
        }
    }

    fn until(waits: &Waits, now: f64) -> Option<f64> {
        let (about, task) = key();
        waits.of(&about, task, now).map(|wait| wait.until)
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let (mut waits, settings) = (Waits::default(), BackoffSettings::default());
        let mut lengths = Vec::new();
        for _ in 0..9 {
            waits.failed(key(), &failed(Meaning::Transient, 100.0), &settings);
            lengths.push(until(&waits, 100.0).unwrap() - 100.0);
        }
        assert_eq!(lengths, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 120.0]);
        waits.went_well(&key(), &resize());
        assert_eq!(until(&waits, 100.0), None);
    }

    #[test]
    fn refusals_wait_longer_and_races_only_if_they_go_on() {
        let (mut waits, settings) = (Waits::default(), BackoffSettings::default());
        for _ in 0..RACES {
            waits.failed(key(), &failed(Meaning::Stale, 0.0), &settings);
            assert_eq!(until(&waits, 0.0), None);
        }
        waits.failed(key(), &failed(Meaning::Stale, 0.0), &settings);
        assert_eq!(until(&waits, 0.0), Some(0.5), "it goes on and on");
        waits.went_well(&key(), &resize());
        waits.failed(key(), &failed(Meaning::Refused, 0.0), &settings);
        assert_eq!(until(&waits, 0.0), Some(10.0));
        assert_eq!(until(&waits, 10.0), None);
    }

    #[test]
    fn a_clock_that_is_set_back_prolongs_no_wait() {
        let (mut waits, settings) = (Waits::default(), BackoffSettings::default());
        waits.failed(key(), &failed(Meaning::Refused, 5000.0), &settings);
        assert_eq!(
            until(&waits, 4999.5),
            Some(5010.0),
            "a hair's breadth is no jump"
        );
        assert_eq!(until(&waits, 4000.0), None);
    }

    #[test]
    fn the_servers_own_wish_is_the_least() {
        let (mut waits, settings) = (Waits::default(), BackoffSettings::default());
        let busy = Meaning::Busy {
            retry_after_s: Some(30.0),
        };
        waits.failed(key(), &failed(busy, 0.0), &settings);
        assert_eq!(until(&waits, 0.0), Some(30.0));
    }

    #[test]
    fn jitter_spreads_by_a_quarter() {
        let settings = BackoffSettings::default();
        for (jitter, expected) in [(0.0, 0.375), (1.0, 0.625)] {
            let mut waits = Waits::default();
            let mut failed = failed(Meaning::Transient, 0.0);
            failed.jitter = jitter;
            waits.failed(key(), &failed, &settings);
            assert_eq!(until(&waits, 0.0), Some(expected));
        }
    }

    #[test]
    fn a_note_that_is_written_between_resizes_does_not_make_up_for_them() {
        let (mut waits, settings) = (Waits::default(), BackoffSettings::default());
        for length in [0.5, 1.0, 2.0] {
            waits.failed(key(), &failed(Meaning::Transient, 100.0), &settings);
            waits.went_well(&key(), &Effect::NotePod(patch()));
            assert_eq!(until(&waits, 100.0), Some(100.0 + length));
        }
    }
}
