//! Which clusters may use anything of a budget.

use std::collections::HashSet;
use std::sync::Arc;

use super::store::{ClusterEntry, Store};
use crate::ray::ReconcileMode;

impl Store {
    /// The UIDs of RayClusters that are scaled in mode central, and of those that are gone and still
    /// have pods.
    pub fn scaled(&self) -> HashSet<Arc<str>> {
        let central = ReconcileMode::Central.name();
        let central = |entry: &&ClusterEntry| entry.mode.as_deref() == Some(central);
        let scaled = self.clusters.values().filter(central);
        let there: HashSet<&str> = self.clusters.values().map(|entry| &*entry.uid).collect();
        let left = self.pods.values().filter_map(|pod| pod.controller.as_ref());
        let left = left.filter(|uid| !there.contains(&***uid));
        let all = scaled.map(|entry| &entry.uid).chain(left);
        all.cloned().collect()
    }
}
