//! Placement groups ([`gangs`](super::gangs)) and jumps ([`jumps`](super::jumps)) that did not get
//! all they need: the part of them that is tried now, and the part that is given up.

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::demand::requests::Demand;
use crate::plan::demand::shape::ShapeId;
use crate::plan::list::{DemandIndex, List};
use crate::plan::memory::gangs::Gangs;
use crate::plan::memory::jumps::Jumps;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::Snapshot;

/// The placement groups and the jump of a decision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    pub(crate) gangs: Gangs,
    pub(crate) jumps: Jumps,
}

impl Attempts {
    /// The remembered ones.
    pub(crate) fn of(snapshot: &Snapshot, now: f64) -> Self {
        Self {
            gangs: Gangs::of(snapshot),
            jumps: Jumps::of(snapshot, now),
        }
    }

    /// Takes out what is not to be tried now. Returns the shapes of the bundles that are kept back.
    pub(crate) fn keep_back(
        &self,
        state: &mut DecisionState,
        demands: &mut List<DemandIndex, Demand<'_>>,
        now: f64,
    ) -> HashSet<ShapeId> {
        self.jumps.withdraw(state);
        self.gangs.keep_back(demands, now)
    }

    /// Gives up what has waited for too long. Returns whether there is any, so that the decision is
    /// made again: what it would have taken goes to others, or makes room for them.
    pub(crate) fn give_up(
        &mut self,
        decided: &Decided<'_>,
        cluster: &str,
        unschedulable_s: f64,
    ) -> bool {
        // A jump without the pods of a placement group is another one, and gets its time.
        self.gangs.give_up(decided, cluster, unschedulable_s) || self.jumps.shrink(decided)
    }
}
