//! The settings of standby: headroom, and what is kept ready at certain hours.

use std::collections::BTreeMap;

use crate::quantity::Quantity;
use crate::schedule::Hours;

/// Room to keep free for demand to come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headroom {
    /// CPUs, in percent of those in use.
    pub share_percent: u32,
    /// CPUs. Of the share and of these the larger number counts.
    pub cpus: u32,
    /// Requests for which there is to be room besides.
    pub requests: Vec<HeadroomRequest>,
}

/// Requests for which there is to be room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomRequest {
    /// The resources of one of them, in Ray's units.
    pub resources: BTreeMap<String, Quantity>,
    /// The number of them.
    pub count: u32,
}

/// Headroom and minima that hold at certain hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledStandby {
    /// The name that plans give as the reason.
    pub name: String,
    /// The hours.
    pub hours: Hours,
    /// The least replicas by worker group.
    pub min_replicas: BTreeMap<String, u32>,
    /// The headroom while the hours last.
    pub headroom: Headroom,
}
