//! Memory of a cluster from look to look. All of it may be lost at any time.

use crate::reconcile::effects::failure::Failure;
use crate::reconcile::memory::RoundMemory;
use crate::reconcile::observed::cadence;
use crate::reconcile::settings::RoundSettings;

/// Memory of a cluster from look to look.
#[derive(Debug, Clone, Default)]
pub struct LookState {
    /// The rounds' memory.
    pub memory: RoundMemory,
    /// The settings by which the cluster is scaled.
    pub settings: RoundSettings,
    /// The refusal of the hand-over record, if it was refused the last time.
    pub(super) refused: Option<RefusedRecord>,
    /// Whether this process owns it, by the objects that were seen last.
    pub(super) is_owned: bool,
    /// Whether the last look found nothing to do, and no object has changed since.
    pub(super) is_idle: bool,
}

/// The refusal of the API server or a webhook to write the hand-over record.
#[derive(Debug, Clone)]
pub(super) struct RefusedRecord {
    pub(super) failure: Failure,
    /// The number of refusals in a row.
    pub(super) times: u32,
    /// The time until which it is not tried again, by a clock that only goes forward.
    pub(super) until: f64,
}

impl LookState {
    /// Whether nothing was found to do, and no object has changed since.
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// The seconds until the next look, if nothing happens before; `busy` is how many clusters of the
    /// process are busy, if this one is.
    pub fn interval_s(&self, busy: Option<usize>, now: f64) -> f64 {
        match busy {
            Some(clusters) => cadence::busy_s(clusters, &self.settings.pace),
            None => cadence::quiet_s(self.memory.changed_at, now, &self.settings.pace),
        }
    }
}
