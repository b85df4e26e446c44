//! Placement groups and jumps that did not get all they need: the part of them that is tried now, and the part that is
//! given up.

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::demand::shape::ShapeId;
use crate::plan::nodes::node::Fate;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::slices::blocked::evidence::Evidence;
use crate::plan::slices::gangs::jumps;
use crate::plan::slices::gangs::placement_groups::{self as gangs, Gangs};
use crate::seconds::is_recent;
use crate::snapshot::Snapshot;
use crate::snapshot::history::JumpMemory;

/// The placement groups and the jump of a decision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    pub(crate) gangs: Gangs,
    /// The last jump that was not admitted.
    pub(crate) jump: Option<JumpMemory>,
    /// The pods of it that are taken back in this decision, by name.
    withdrawn: HashSet<String>,
}

impl Attempts {
    /// The remembered ones, as far as they still count.
    pub(crate) fn of(snapshot: &Snapshot, now: f64) -> Self {
        let pending = snapshot.gcs.pending_gang_resource_requests.iter();
        let gangs = pending.filter_map(|gang| {
            let (title, memory) = snapshot.history.gangs.get_key_value(gang.title())?;
            Some((title.clone(), *memory))
        });
        let jump = snapshot.history.jump.clone();
        Self {
            gangs: gangs.collect(),
            jump: jump.filter(|jump| is_recent(jump.seen_at, jumps::FORGOTTEN_AFTER_S, now)),
            withdrawn: HashSet::default(),
        }
    }

    /// Takes out what is not to be tried now. Returns the shapes of the bundles that are kept back.
    pub(crate) fn keep_back(&self, decided: &mut Decided<'_>) -> HashSet<ShapeId> {
        // Before anything is placed: what is taken back must take no demand.
        if !self.withdrawn.is_empty() {
            for node in decided.state.nodes.iter_mut() {
                if node.pod().is_some_and(|pod| self.withdrawn.contains(pod)) {
                    node.fate = Fate::Remove(RemovalCause::NotAdmitted);
                }
            }
        }
        let now = decided.situation.now;
        gangs::keep_back(&self.gangs, &mut decided.demands, now)
    }

    /// These without what has waited for too long, if anything has: the decision is then made again, because what that
    /// would have taken goes to others, or makes room for them.
    pub(crate) fn without_given_up(
        &self,
        decided: &Decided<'_>,
        evidence: &Evidence<'_>,
    ) -> Option<Self> {
        let mut fewer = self.clone();
        // A jump without the pods of a placement group is another one, and gets its time.
        if gangs::give_up(&mut fewer.gangs, decided, &evidence.awaited) {
            return Some(fewer);
        }
        fewer.withdrawn = jumps::shrink(&mut fewer.jump, decided);
        (!fewer.withdrawn.is_empty()).then_some(fewer)
    }
}
