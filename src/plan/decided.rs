//! Results of the phases of a decision, for the modules that turn them into a plan and a report.

use std::collections::BTreeMap;

use crate::plan::demand::requests::{Demand, RequestBatch};
use crate::plan::list::{ByGroup, DemandIndex, List, StandbyIndex};
use crate::plan::nodes::blocked::Evidence;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::rows::Leftovers;
use crate::plan::outcome::cause::Departure;
use crate::plan::outcome::problem::Problem;
use crate::plan::packing::state::DecisionState;
use crate::plan::removal::deadline::DrainingExcess;
use crate::plan::standby::ready::StandbyDemand;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::history::{BurstMemory, GangMemory, JumpMemory};
use crate::snapshot::pod::Pod;

/// The results of all phases of one decision.
pub(crate) struct Decided<'a> {
    pub(crate) state: DecisionState,
    pub(crate) config: ClusterConfig,
    pub(crate) demands: List<DemandIndex, Demand<'a>>,
    /// The request batches that could not be placed, in the order of packing.
    pub(crate) remainder: Vec<RequestBatch>,
    /// The standby demands, numbered after the demands.
    pub(crate) standby: List<StandbyIndex, StandbyDemand>,
    pub(crate) own_pods: &'a [Pod<'a>],
    pub(crate) live: &'a LiveNodes<'a>,
    pub(crate) leftovers: Leftovers<'a>,
    pub(crate) unneeded_since: BTreeMap<String, Vec<f64>>,
    /// The number of pods that each group had when it last had work for all of them.
    pub(crate) at_work: ByGroup<u64>,
    /// The bursts of work of each group, if its keep-alive times are learnt from them.
    pub(crate) bursts: Option<ByGroup<Vec<BurstMemory>>>,
    /// Evidence in the objects that groups cannot be served.
    pub(crate) evidence: Evidence<'a>,
    /// The draining nodes above a maximum.
    pub(crate) excess: Vec<DrainingExcess>,
    /// The placement groups that have been given up.
    pub(crate) gangs: BTreeMap<String, GangMemory>,
    /// The last jump that was not admitted.
    pub(crate) jump: Option<JumpMemory>,
    /// The pods that are about to leave with their Kubernetes node, by name.
    pub(crate) departures: &'a BTreeMap<String, Departure>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) now: f64,
}
