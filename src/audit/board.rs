//! The results of the audit for all objects, kind by kind, and the notification of changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::object_audit::{AuditTally, Judged};
use crate::ray::Kind;

/// The results for all objects.
#[derive(Debug, Default)]
pub(super) struct Board {
    kinds: Mutex<BTreeMap<Kind, Vec<Arc<Judged>>>>,
    pub(super) changed: Notify,
    is_written: AtomicBool,
}

impl Board {
    /// Stores the results for all objects of a kind.
    pub(super) fn post(&self, kind: Kind, judged: Vec<Arc<Judged>>) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.insert(kind, judged);
        // Before the last kind is known, sums would be too small.
        if kinds.len() == Kind::ALL.len() {
            self.changed.notify_one();
        }
    }

    /// Adds all results up: over all objects, and for each policy.
    pub(super) fn tallies(&self) -> (AuditTally, BTreeMap<String, AuditTally>) {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = AuditTally::default();
        let mut by_policy: BTreeMap<String, AuditTally> = BTreeMap::new();
        for judged in kinds.values().flatten() {
            all.add(judged);
            for policy in &judged.policies {
                by_policy.entry(policy.to_string()).or_default().add(judged);
            }
            for policy in &judged.budgets_above {
                let tally = by_policy.entry(policy.to_string()).or_default();
                tally.add_most(judged);
            }
        }
        (all, by_policy)
    }

    /// Notes that the results have been written, as far as they could be.
    pub(super) fn note_written(&self) {
        self.is_written.store(true, Ordering::Release);
    }

    /// Whether the results have been written once.
    pub(super) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    /// The results of all objects.
    pub(super) fn all(&self) -> Vec<Arc<Judged>> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Facts;
    use crate::object_audit::examine;
    use crate::policy::{Policies, Settings};
    use crate::ray::RayObject;
    use crate::raypolicy::compile;

    #[test]
    fn a_budget_for_jobs_counts_the_clusters_that_are_made_for_them() {
        let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": "jobs"},
            "spec": {"match": {"kinds": ["RayJob"]}, "reconcile": {"budget": {"cpu": 9}}}});
        let policy = compile(&compile::read(&written).unwrap()).0;
        let policies = Policies::new(policy.into_iter().collect());
        let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "a-x7k2p", "namespace": "a", "uid": "u",
                "annotations": {"rayfit.dev/reconcile": "central"},
                "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "a",
                    "controller": true}]},
            "spec": {"headGroupSpec": {"template": {"spec": {"containers": [
                {"name": "ray", "resources": {"limits": {"cpu": 3}}}]}}}}});
        let cluster = RayObject::parse(&cluster).unwrap();
        let now = "2027-01-01T00:00:00Z".parse().unwrap();
        let (facts, base) = (Facts::default(), Settings::default());
        let judged = Arc::new(examine(&cluster, &facts, &policies, &base, now));
        let board = Board::default();
        board.post(Kind::RayCluster, vec![judged]);
        let (all, by_policy) = board.tallies();
        let of_jobs = &by_policy["jobs"];
        assert_eq!((all.objects, of_jobs.objects), (1, 0));
        assert_eq!((of_jobs.budgeted, of_jobs.most.cpu_milli), (1, 3000));
    }
}
