//! Optional GCS queries.

use std::collections::BTreeSet;

use rayfit_core::plan::{PlanSettings, followed_groups};
use rayfit_core::ray::ippr;
use rayfit_core::snapshot::ClusterObject;

/// Optional GCS queries, for settings of the cluster that need them.
#[derive(Debug, Default)]
pub struct Extras {
    /// The users of the cluster are asked for, because it ends when nobody uses it.
    pub ends_unused: bool,
    /// The groups for whose pods to ask how much memory is in use.
    pub follows: BTreeSet<String>,
}

impl Extras {
    /// Derives them from the RayCluster and the settings by which it is scaled.
    pub fn of(cluster: &ClusterObject, settings: &PlanSettings) -> Self {
        let object = cluster.object();
        let grows = object["metadata"]["annotations"].get(ippr::ANNOTATION);
        let follows = grows.map(|_| followed_groups(cluster, settings));
        Self {
            ends_unused: object["spec"]["idleTerminationOptions"].is_object(),
            follows: follows.unwrap_or_default(),
        }
    }
}
