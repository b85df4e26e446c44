//! Memory of the slices after a decision.

use crate::plan::decided::Decided;
use crate::plan::outcome::plan::Plan;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::gangs::jumps;
use crate::plan::slices::growth_backoff::backoff;
use crate::plan::slices::small_pods::bursts;
use crate::plan::slices::standby::ready;
use crate::plan::slices::{blocked, departures, excess, resizes};
use crate::snapshot::history::History;

impl Findings<'_> {
    /// Adds what the slices remember.
    pub(crate) fn remember(&self, history: &mut History, decided: &Decided<'_>, plan: &Plan) {
        let previous = decided.situation.history();
        (history.at_work, history.bursts) = bursts::update(&decided.state, self);
        let has_too_large = &self.evidence.has_too_large;
        history.growth_backoffs = backoff::update(decided, has_too_large);
        history.blocked = blocked::memory::update(decided, &self.evidence);
        history.early_ends = blocked::early_ends::update(decided, &self.evidence);
        history.excess = excess::remember(decided, &self.excess, plan);
        history.gangs.clone_from(&self.attempts.gangs);
        history.jump = jumps::update(decided, self.attempts.jump.as_ref());
        let departing = self.departures.iter();
        history.departing = departing
            .map(|(pod, departure)| (pod.clone(), departure.since))
            .collect();
        history.told = departures::announcements(previous, &self.departures, plan);
        history.rooms.clone_from(&self.rooms);
        history.resizes = resizes::remember(decided);
        history.standby = ready::remember(&decided.state);
    }
}
