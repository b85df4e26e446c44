//! The situation that a decision is about, as all of its phases see it.

use std::collections::BTreeMap;

use crate::plan::outcome::cause::Departure;
use crate::plan::settings::PlanSettings;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::pod::Pod;
use crate::snapshot::{History, Snapshot};

/// The snapshot and the settings of a decision, with what is read from them once for all phases.
pub(crate) struct Situation<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The settings, without the improvements that the strategy does not have.
    pub(crate) settings: PlanSettings,
    /// The pods of the RayCluster.
    pub(crate) own_pods: &'a [Pod<'a>],
    pub(crate) live: &'a LiveNodes<'a>,
    /// The pods that are about to leave with their Kubernetes node, by name.
    pub(crate) departures: BTreeMap<String, Departure>,
    /// The time of the decision, in seconds since 1970.
    pub(crate) now: f64,
}

impl<'a> Situation<'a> {
    /// The memory of earlier rounds.
    pub(crate) fn history(&self) -> &'a History {
        &self.snapshot.history
    }

    /// True where the improvements on Ray hold.
    pub(crate) fn is_rayfit(&self) -> bool {
        self.settings.strategy.is_rayfit()
    }
}
