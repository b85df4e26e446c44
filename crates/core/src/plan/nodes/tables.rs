//! The tables of the slices: what they alone know about a node, by the number of its entry. Ray's decision has none of it.

use crate::hash::HashMap;
use crate::plan::growth::in_use::InUse;
use crate::plan::list::{GroupIndex, NodeIndex, StandbyIndex};
use crate::plan::outcome::plan::MemoryReason;
use crate::plan::slices::small_pods::reason::GapsSeen;
use crate::snapshot::history::{FollowedMemory, ShrinkFailures, SpareCpu};

/// Notes of the slices about nodes. A node of which a table says nothing is not in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SliceTables {
    /// Notes about the sizes of pods that may be resized.
    pub(crate) sizes: HashMap<NodeIndex, SizeNotes>,
    /// Seconds for which pods have been there without a Kubernetes node that has room for them, if the scheduler
    /// says so.
    pub(crate) unschedulable_s: HashMap<NodeIndex, f64>,
    /// The pending nodes that are not about to start.
    pub(crate) starts: HashMap<NodeIndex, StartProspect>,
    /// The nodes with a role in standby.
    pub(crate) standby: HashMap<NodeIndex, StandbyRole>,
    /// The nodes that schedules keep of groups beyond their minima.
    pub(crate) floors: HashMap<GroupIndex, Floor>,
    /// The nodes that are kept though they are idle, and why.
    pub(crate) kept: HashMap<NodeIndex, KeptReason>,
}

/// The prospect of a pending pod that is not about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartProspect {
    /// It would not start now.
    Blocked,
    /// It has not started in time, so no demand counts on it.
    Overdue,
}

/// The role of a node in standby.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StandbyRole {
    /// It has room that is kept ready for that.
    Needed(StandbyIndex),
    /// It is launched for that alone.
    Launched(StandbyIndex),
    /// It was needed until then, in seconds since 1970.
    Released(f64),
}

/// The nodes that a schedule keeps of a group beyond its minimum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    /// The number of nodes.
    pub(crate) nodes: u64,
    /// The standby demand for which they are kept.
    pub(crate) standby: StandbyIndex,
}

/// The reason why a node is kept though it has been idle for long enough to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum KeptReason {
    /// It is kept ready for that.
    Standby(StandbyIndex),
    /// It was needed on standby until then, in seconds since 1970.
    Released(f64),
    /// A slice keeps it, for a reason in its own words.
    For(&'static str),
}

/// Notes about the size of a pod that may be resized.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SizeNotes {
    /// Failures to make the pod smaller.
    pub(crate) shrink_failures: ShrinkFailures,
    /// The CPU that the pod has needed while it had some to spare.
    pub(crate) spare: Option<SpareCpu>,
    /// Seconds for which the CPU that the pod is now asked to give up was spare.
    pub(crate) shrinks_for: Option<f64>,
    /// The memory really in use, if that is known and followed.
    pub(crate) in_use: Option<InUse>,
    /// Ray's memory monitor is on in the pod.
    pub(crate) monitored: bool,
    /// The memory that the pod was given because its own was nearly full.
    pub(crate) followed: Option<FollowedMemory>,
    /// The reason why the pod is now asked to have another amount of memory, if that is for what is
    /// in use.
    pub(crate) memory_reason: Option<MemoryReason>,
    /// Seconds for which the pod is kept while it is idle, if that is another time than for others because it is small,
    /// and the gaps between bursts of work from which that was learnt, if it was.
    pub(crate) kept: Option<(f64, Option<GapsSeen>)>,
}

impl SliceTables {
    /// Says of a part what is known of the entry that it was split off. An entry for several nodes has no pod, so
    /// what is known of pods does not concern it.
    pub(crate) fn split(&mut self, entry: NodeIndex, part: NodeIndex) {
        if let Some(start) = self.starts.get(&entry).copied() {
            self.starts.insert(part, start);
        }
        if let Some(role) = self.standby.get(&entry).copied() {
            self.standby.insert(part, role);
        }
    }

    /// The standby demand that needs a node.
    pub(crate) fn needed_for(&self, node: NodeIndex) -> Option<StandbyIndex> {
        match self.standby.get(&node)? {
            StandbyRole::Needed(standby) | StandbyRole::Launched(standby) => Some(*standby),
            StandbyRole::Released(_) => None,
        }
    }

    /// Seconds for which a node may be idle, if that is another time than for others of its group.
    pub(crate) fn idle_timeout_s(&self, node: NodeIndex) -> Option<f64> {
        let (seconds, _) = self.sizes.get(&node)?.kept?;
        Some(seconds)
    }

    /// The nodes that a group keeps beyond its minimum.
    pub(crate) fn floor(&self, group: GroupIndex) -> u64 {
        self.floors.get(&group).map_or(0, |floor| floor.nodes)
    }

    /// The reason to keep a node of a group, of which so many nodes stay, though it has been idle for `timeout_s`.
    pub(crate) fn keep_reason(
        &self,
        node: NodeIndex,
        (group, staying): (GroupIndex, u64),
        (timeout_s, now): (f64, f64),
    ) -> Option<KeptReason> {
        let floor = self.floors.get(&group);
        let floor = floor.filter(|floor| staying <= floor.nodes);
        let needed_for = floor.map(|floor| floor.standby);
        if let Some(standby) = needed_for.or_else(|| self.needed_for(node)) {
            return Some(KeptReason::Standby(standby));
        }
        match self.standby.get(&node) {
            // Once it is not needed any more, its idle time begins.
            Some(StandbyRole::Released(at)) if now - at <= timeout_s => {
                Some(KeptReason::Released(*at))
            }
            _ => None,
        }
    }
}

impl SizeNotes {
    /// True if more work may have Ray's memory monitor kill some of it: half of the memory with which the
    /// pod started (`base`) is in use, and the monitor goes by that memory, however far the pod grows.
    pub(crate) fn is_crowded(&self, base: i64) -> bool {
        let half = |used: InUse| used.soon >= base / 2;
        self.monitored && self.in_use.is_some_and(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_an_entry_is_known_of_its_parts() {
        let [entry, other, part] = [1, 2, 3].map(NodeIndex::from);
        let mut tables = SliceTables::default();
        tables.starts.insert(entry, StartProspect::Blocked);
        let role = StandbyRole::Launched(StandbyIndex::from(0));
        tables.standby.insert(entry, role);
        tables.starts.insert(other, StartProspect::Overdue);
        tables.split(entry, part);
        assert_eq!(tables.starts[&part], StartProspect::Blocked);
        assert_eq!(tables.standby[&part], role);
        let next = NodeIndex::from(4);
        tables.split(next, other);
        assert_eq!(tables.starts[&other], StartProspect::Overdue);
        assert_eq!(tables.needed_for(next), None);
    }
}
