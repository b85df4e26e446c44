//! What a GCS is asked beside its state.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::plan::{PlanSettings, followed_groups};
use crate::ray::ippr;

/// What else the GCS is asked, for settings of the cluster that need it.
#[derive(Debug, Default)]
pub struct Extras {
    /// Who uses the cluster, which ends when nobody does.
    pub ends_unused: bool,
    /// How much memory is in use in the pods of these groups.
    pub follows: BTreeSet<String>,
}

impl Extras {
    /// By the RayCluster and the settings by which it is scaled.
    pub fn of(cluster: &Value, settings: &PlanSettings) -> Self {
        let grows = cluster["metadata"]["annotations"].get(ippr::ANNOTATION);
        let follows = grows.map(|_| followed_groups(&cluster.clone().into(), settings));
        Self {
            ends_unused: cluster["spec"]["idleTerminationOptions"].is_object(),
            follows: follows.unwrap_or_default(),
        }
    }
}
