//! The results of the audit for all objects, kind by kind, and the notification of changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::sync::Notify;

use rayfit_core::object_audit::{AuditTally, AuditedObject};
use rayfit_core::ray::Kind;

/// The results for all objects.
#[derive(Debug, Default)]
pub(super) struct Board {
    kinds: Mutex<BTreeMap<Kind, Vec<Arc<AuditedObject>>>>,
    pub(super) changed: Notify,
    /// The results have been written once, as far as they could be.
    pub(super) is_written: AtomicBool,
}

impl Board {
    /// Stores the results for all objects of a kind.
    pub(super) fn post(&self, kind: Kind, judged: Vec<Arc<AuditedObject>>) {
        let mut kinds = self.kinds.lock();
        kinds.insert(kind, judged);
        // Before the last kind is known, sums would be too small.
        if kinds.len() == Kind::ALL.len() {
            self.changed.notify_one();
        }
    }

    /// Adds all results up: over all objects, and for each policy.
    pub(super) fn tallies(&self) -> (AuditTally, BTreeMap<String, AuditTally>) {
        let kinds = self.kinds.lock();
        let mut all = AuditTally::default();
        let mut by_policy: BTreeMap<String, AuditTally> = BTreeMap::new();
        for judged in kinds.values().flatten() {
            all.add(judged);
            for policy in &judged.policies {
                by_policy.entry(policy.to_string()).or_default().add(judged);
            }
        }
        (all, by_policy)
    }

    /// The results of all objects.
    pub(super) fn all(&self) -> Vec<Arc<AuditedObject>> {
        let kinds = self.kinds.lock();
        kinds.values().flatten().cloned().collect()
    }
}
