//! Results of the phases of a decision, for the modules that turn them into a plan and a report.

use crate::plan::demand::requests::{Demand, RequestBatch};
use crate::plan::list::{DemandIndex, List};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::rows::Leftovers;
use crate::plan::outcome::problem::Problem;
use crate::plan::packing::state::DecisionState;
use crate::plan::situation::Situation;

/// The results of all phases of one decision.
pub(crate) struct Decided<'a> {
    pub(crate) situation: &'a Situation<'a>,
    pub(crate) config: ClusterConfig,
    pub(crate) state: DecisionState,
    pub(crate) demands: List<DemandIndex, Demand<'a>>,
    /// The request batches that could not be placed, in the order of packing.
    pub(crate) remainder: Vec<RequestBatch>,
    pub(crate) leftovers: Leftovers<'a>,
    pub(crate) problems: Vec<Problem>,
}
