//! The situation that a decision is about, as all of its phases see it.

use crate::hash::HashMap;
use crate::plan::settings::PlanSettings;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::pod::Pod;
use crate::snapshot::{History, Snapshot};

/// The snapshot and the settings of a decision, with what is read from them once for all phases.
pub(crate) struct Situation<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The settings. Strategy `Ray` has none of the slices' settings in effect.
    pub(crate) settings: &'a PlanSettings,
    /// The pods of the RayCluster.
    pub(crate) own_pods: &'a [Pod<'a>],
    pub(crate) live: &'a LiveNodes<'a>,
    /// The time of the decision, in seconds since 1970.
    pub(crate) now: f64,
}

impl<'a> Situation<'a> {
    /// The pods of the RayCluster, by name.
    pub(crate) fn pods_by_name(&self) -> HashMap<&'a str, &'a Pod<'a>> {
        self.own_pods.iter().map(|pod| (pod.name, pod)).collect()
    }

    /// The memory of earlier rounds.
    pub(crate) fn history(&self) -> &'a History {
        &self.snapshot.history
    }
}
