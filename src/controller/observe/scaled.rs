//! Which clusters may use anything of a budget, and which have a sidecar that stands by.

use std::collections::HashSet;
use std::sync::Arc;

use super::store::{ClusterEntry, Store};
use crate::ray::ReconcileMode;

impl ClusterEntry {
    /// Whether its annotation asks for mode central.
    pub fn asks_for_central(&self) -> bool {
        self.mode.as_deref() == Some(ReconcileMode::Central.name())
    }

    /// Whether its sidecar scales it, in place of the central replicas.
    pub fn is_stood_in(&self) -> bool {
        let record = self.scaled_by.as_deref().unwrap_or_default();
        self.standby.is_some() && self.asks_for_central() && record.starts_with("sidecar/")
    }
}

impl Store {
    /// Whether the sidecar of any cluster in mode central stands by for the Rayfit of a namespace.
    pub fn has_standby(&self, namespace: &str) -> bool {
        let mut clusters = self.clusters.values();
        clusters
            .any(|entry| entry.standby.as_deref() == Some(namespace) && entry.asks_for_central())
    }

    /// The UIDs of RayClusters that are scaled in mode central, and of those that are gone and still
    /// have pods.
    pub fn scaled(&self) -> HashSet<Arc<str>> {
        let clusters = self.clusters.values();
        let scaled = clusters.filter(|entry| entry.asks_for_central());
        let there: HashSet<&str> = self.clusters.values().map(|entry| &*entry.uid).collect();
        let left = self.pods.values().filter_map(|pod| pod.controller.as_ref());
        let left = left.filter(|uid| !there.contains(&***uid));
        let all = scaled.map(|entry| &entry.uid).chain(left);
        all.cloned().collect()
    }
}
