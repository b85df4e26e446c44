//! The Leases in the API server.

use std::collections::BTreeMap;

use crate::reconcile::ownership::lease::record::{LeaseName, LeaseRecord, LeaseStep, Terms};

/// The Leases.
#[derive(Debug, Clone, Default)]
pub(super) struct LeaseStore {
    pub(super) leases: BTreeMap<LeaseName, LeaseRecord>,
    version: u64,
}

/// What the API server answers.
#[derive(Debug, Clone)]
pub(super) enum LeaseAnswer {
    /// The Lease as it was written; a removed one is empty.
    Written(LeaseRecord),
    /// All Leases.
    Listed(Vec<(LeaseName, LeaseRecord)>),
    /// It is not as the replica knew it.
    Conflict,
}

impl LeaseStore {
    /// Carries out a step of a replica, by compare-and-swap.
    pub(super) fn serve(&mut self, me: &str, shards: u32, step: &LeaseStep) -> LeaseAnswer {
        let me = || Some(me.to_owned());
        let (expected, holder) = match step {
            LeaseStep::Look(_) => {
                return LeaseAnswer::Listed(self.leases.clone().into_iter().collect());
            }
            LeaseStep::Create(_) => (None, me()),
            LeaseStep::Hold(_, record) => (Some(record), me()),
            LeaseStep::Release(_, record) | LeaseStep::Remove(_, record) => (Some(record), None),
            LeaseStep::ReleaseDead(_, record) => (record.as_ref(), None),
        };
        let name = step.name();
        let stored = self.leases.get(name).map(|lease| &lease.version);
        if stored != expected.map(|record| &record.version) {
            return LeaseAnswer::Conflict;
        }
        self.version += 1;
        let record = LeaseRecord {
            holder,
            version: self.version.to_string(),
            duration: Terms::default().duration,
            shards: Some(shards),
            acquired: None,
        };
        if matches!(step, LeaseStep::Remove(..)) {
            self.leases.remove(name);
        } else {
            self.leases.insert(name.clone(), record.clone());
        }
        LeaseAnswer::Written(record)
    }
}
