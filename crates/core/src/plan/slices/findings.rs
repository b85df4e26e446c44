//! Findings of the slices.

use std::collections::BTreeMap;

use crate::plan::list::{ByGroup, List, StandbyIndex};
use crate::plan::slices::blocked::evidence::Evidence;
use crate::plan::slices::departures::reason::Departure;
use crate::plan::slices::excess::DrainingExcess;
use crate::plan::slices::gangs::attempts::Attempts;
use crate::plan::slices::objects::hanging::HangingPods;
use crate::plan::slices::standby::ready::StandbyDemand;
use crate::snapshot::history::{BurstMemory, RoomMemory};

/// Findings of the slices about one decision, for the plan, its report and the history.
pub(crate) struct Findings<'a> {
    /// Evidence in the objects that groups cannot be served.
    pub(crate) evidence: Evidence<'a>,
    /// The draining nodes above a maximum.
    pub(crate) excess: Vec<DrainingExcess>,
    /// The pods that hang in termination.
    pub(crate) hanging: HangingPods<'a>,
    /// The standby demands, numbered after the demands.
    pub(crate) standby: List<StandbyIndex, StandbyDemand>,
    /// The number of pods that each group had when it last had work for all of them.
    pub(crate) at_work: ByGroup<u64>,
    /// The bursts of work of each group, if its keep-alive times are learnt from them.
    pub(crate) bursts: Option<ByGroup<Vec<BurstMemory>>>,
    /// The placement groups that have been given up, and the last jump that was not admitted.
    pub(crate) attempts: &'a Attempts,
    /// The pods that are about to leave with their Kubernetes node, by name.
    pub(crate) departures: BTreeMap<String, Departure>,
    /// The time since which Kubernetes nodes have had room for pods that wait.
    pub(crate) rooms: RoomMemory,
}
