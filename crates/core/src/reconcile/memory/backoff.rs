//! Back-offs: for how long work that failed is not tried again.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use crate::reconcile::effects::effect::{Effect, EffectClass, EffectTarget};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::seconds::Retry;

/// The most back-offs that are kept; beyond that, those that end first are forgotten.
const KEPT: usize = 4096;

/// The factor by which the first back-off is longer after a refusal than after another failure.
// A quota, a limit range or a permission stays as it is until somebody changes it.
const PATIENCE: f64 = 20.0;

/// The largest part of a back-off by which jitter makes it shorter or longer.
const SPREAD: f64 = 0.25;

/// The lost races in a row after which one is backed off.
// An object changes meanwhile once or twice, and not for ever.
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
    kind: Option<Discriminant<Effect>>,
}

impl Waits {
    /// The back-off that holds now, if there is one.
    pub fn of(&self, about: &EffectTarget, task: EffectClass, now: f64) -> Option<&Wait> {
        let wait = self.0.get(&(about.clone(), task))?;
        // One that begins later was recorded by a clock that has been set back since, and would
        // last as much longer.
        (wait.from <= now + SKEW_S && now < wait.until).then_some(wait)
    }

    /// Records the failure of an effect. `jitter` is from 0 to 1 and spreads the back-offs.
    pub(crate) fn failed(
        &mut self,
        key: (EffectTarget, EffectClass),
        effect: &Effect,
        failure: &Failure,
        mut retry: Retry,
        now: f64,
        jitter: f64,
    ) {
        let (mut free, mut asked_s) = (0, 0.0);
        match failure.meaning() {
            // The GCS has just reported the node that it does not know now: its report is old, or a lie, and
            // may be repeated for long.
            Meaning::Gone if !effect.is_kubernetes() => {}
            // The pod is gone, or its limit is known from now on: no time would change that.
            Meaning::Gone | Meaning::TooLarge(_) => return,
            Meaning::Refused | Meaning::Forbidden => retry.first_s *= PATIENCE,
            Meaning::Stale => free = RACES,
            Meaning::Busy { retry_after_s } => asked_s = retry_after_s.unwrap_or_default(),
            Meaning::Transient => {}
        }
        let failures = self.0.get(&key).map_or(0, |wait| wait.failures) + 1;
        let whole_s = match failures.saturating_sub(free) {
            0 => 0.0,
            counted => retry.wait_s(counted),
        };
        // A thousand clusters must not try again at the same moment.
        let spread = 1.0 + SPREAD * (2.0 * jitter.clamp(0.0, 1.0) - 1.0);
        // The wait that the API server asks for comes last: neither the longest back-off nor jitter
        // shortens it.
        let wait_s = (whole_s * spread).max(asked_s);
        let wait = Wait {
            failures,
            from: now,
            until: now + wait_s,
            why: failure.explain(effect),
            kind: Some(discriminant(effect)),
        };
        self.insert(key, wait);
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
        self.insert(key, wait);
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
    pub(crate) fn forget_old(&mut self, now: f64, longest_s: f64) {
        self.0.retain(|_, wait| wait.until + 2.0 * longest_s > now);
    }

    /// Forgets the back-offs of what is asked of a GCS only.
    pub(crate) fn forget_gcs(&mut self) {
        let kubernetes = [EffectClass::Replicas, EffectClass::End, EffectClass::Resize];
        self.0.retain(|(_, class), _| kubernetes.contains(class));
    }

    fn insert(&mut self, key: (EffectTarget, EffectClass), wait: Wait) {
        self.0.insert(key, wait);
        while self.0.len() > KEPT {
            let waits = self.0.iter();
            let first = waits.min_by(|(_, one), (_, other)| one.until.total_cmp(&other.until));
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                return;
            };
            self.0.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reconcile::effects::effect::PodPatch;
    use crate::reconcile::effects::failure::ApiStatus;
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

    const SETTINGS: Retry = Retry {
        first_s: 0.5,
        longest_s: 120.0,
    };

    fn status(code: u16, retry_after_s: Option<f64>) -> Failure {
        Failure::Api(ApiStatus {
            code,
            retry_after_s,
            ..ApiStatus::default()
        })
    }

    /// The meanings `Transient`, `Stale` and `Refused`.
    const TRANSIENT: u16 = 500;
    const STALE: u16 = 409;
    const REFUSED: u16 = 403;

    fn fail(waits: &mut Waits, code: u16, now: f64) {
        waits.failed(key(), &resize(), &status(code, None), SETTINGS, now, 0.5);
    }

    fn until(waits: &Waits, now: f64) -> Option<f64> {
        let (about, task) = key();
        waits.of(&about, task, now).map(|wait| wait.until)
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut waits = Waits::default();
        let mut lengths = Vec::new();
        for _ in 0..9 {
            fail(&mut waits, TRANSIENT, 100.0);
            lengths.push(until(&waits, 100.0).unwrap() - 100.0);
        }
        assert_eq!(lengths, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 120.0]);
        waits.went_well(&key(), &resize());
        assert_eq!(until(&waits, 100.0), None);
    }

    #[test]
    fn refusals_wait_longer_and_races_only_if_they_go_on() {
        let mut waits = Waits::default();
        for _ in 0..RACES {
            fail(&mut waits, STALE, 0.0);
            assert_eq!(until(&waits, 0.0), None);
        }
        fail(&mut waits, STALE, 0.0);
        assert_eq!(until(&waits, 0.0), Some(0.5), "it goes on and on");
        waits.went_well(&key(), &resize());
        fail(&mut waits, REFUSED, 0.0);
        assert_eq!(until(&waits, 0.0), Some(10.0));
        assert_eq!(until(&waits, 10.0), None);
    }

    #[test]
    fn a_clock_that_is_set_back_prolongs_no_wait() {
        let mut waits = Waits::default();
        fail(&mut waits, REFUSED, 5000.0);
        assert_eq!(
            until(&waits, 4999.5),
            Some(5010.0),
            "a hair's breadth is no jump"
        );
        assert_eq!(until(&waits, 4000.0), None);
    }

    #[test]
    fn the_servers_own_wish_is_the_least() {
        let mut waits = Waits::default();
        let busy = status(429, Some(30.0));
        waits.failed(key(), &resize(), &busy, SETTINGS, 0.0, 0.5);
        assert_eq!(until(&waits, 0.0), Some(30.0));
    }

    #[test]
    fn jitter_spreads_by_a_quarter() {
        let failure = status(TRANSIENT, None);
        for (jitter, expected) in [(0.0, 0.375), (1.0, 0.625)] {
            let mut waits = Waits::default();
            waits.failed(key(), &resize(), &failure, SETTINGS, 0.0, jitter);
            assert_eq!(until(&waits, 0.0), Some(expected));
        }
    }

    #[test]
    fn a_note_that_is_written_between_resizes_does_not_make_up_for_them() {
        let mut waits = Waits::default();
        for length in [0.5, 1.0, 2.0] {
            fail(&mut waits, TRANSIENT, 100.0);
            waits.went_well(&key(), &Effect::NotePod(patch()));
            assert_eq!(until(&waits, 100.0), Some(100.0 + length));
        }
    }
}
