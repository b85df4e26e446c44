//! What the phases of a decision leave behind, for those who say what is to be done.

use std::collections::BTreeMap;

use crate::plan::demand::batch::RequestBatch;
use crate::plan::demand::requests::Demand;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::rows::Leftovers;
use crate::plan::outcome::plan::Problem;
use crate::plan::packing::state::World;
use crate::snapshot::pod::Pod;

/// What the phases leave behind.
pub(crate) struct Phases<'a> {
    pub(crate) world: World,
    pub(crate) config: ClusterConfig,
    pub(crate) demands: Vec<Demand<'a>>,
    /// Units that could not be placed, in order.
    pub(crate) left: Vec<RequestBatch>,
    pub(crate) own: &'a [Pod<'a>],
    pub(crate) leftovers: Leftovers<'a>,
    pub(crate) unneeded_since: BTreeMap<String, Vec<f64>>,
    /// Groups whose new nodes count at their first size, with the seconds left.
    pub(crate) stunted: BTreeMap<String, f64>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) now: f64,
}
