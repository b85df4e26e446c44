//! The clock of a process, which may be wrong, and what the process has heard of the API server's.

use rayfit_core::reconcile::observed::clock_skew::ClockSkew;
use rayfit_core::simulate::moment::Moment;

/// The seconds between two renewals of Leases, whatever else a process does.
const RENEWED_S: f64 = 5.0;

/// The clock of a process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessClock {
    /// Seconds by which it is ahead.
    pub(super) ahead_s: f64,
    skew: ClockSkew,
    /// The time of the API server's last answer.
    answered: Option<Moment>,
}

impl ProcessClock {
    /// Hears what time it is by the API server's clock, as every answer of that says.
    pub(super) fn hear(&mut self, now: Moment) {
        let own = now.epoch_seconds() + self.ahead_s;
        // The header `Date` has whole seconds.
        self.skew.note_answer(now.epoch_seconds().floor(), own, own);
        self.answered = Some(now);
    }

    /// Hears it by the renewal of Leases, if that is due.
    pub(super) fn renew(&mut self, now: Moment) {
        if self.answered.is_none_or(|at| now.since(at) >= RENEWED_S) {
            self.hear(now);
        }
    }

    /// Seconds by which it is ahead of the API server's clock without its process knowing it.
    pub(super) fn beyond_s(&self) -> f64 {
        self.ahead_s - self.skew.ahead_s()
    }
}
