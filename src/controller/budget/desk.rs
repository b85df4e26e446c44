//! The records of all budgets, as the watch showed them last, and as they are read and written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Resource as _;
use kube::api::{ListParams, PostParams, Request};
use kube::core::ObjectList;

use super::stored::{KIND, StoredRecord, lease, name_of, policy_of, read};
use crate::apiserver::{ObjectName, WatchEvent};
use crate::budget::book::RecordWrite;
use crate::budget::limit::Budget;
use crate::controller::act::writer::Writer;
use crate::controller::lease::stored::LABEL;
use crate::controller::metrics::RoundMetrics;
use crate::controller::observe::Observed;
use crate::reconcile::Failure;

/// For how long a cluster with an entry has to be unknown here until its entry is removed: longer than
/// a watch lags that will show it.
const GONE: Duration = Duration::from_mins(1);

/// The records of all budgets, for all clusters of the process. Clones share them.
#[derive(Clone)]
pub struct BudgetDesk {
    inner: Arc<Inner>,
}

/// By policy; nothing for a record that cannot be read.
type ReadRecords = BTreeMap<String, Option<Arc<StoredRecord>>>;

struct Inner {
    namespace: String,
    observed: Observed,
    metrics: RoundMetrics,
    seen: Mutex<BTreeMap<String, Arc<StoredRecord>>>,
    /// The last read, and when it began.
    last_read: tokio::sync::Mutex<Option<(Instant, ReadRecords)>>,
    /// Since when clusters with entries are not known, by UID.
    missing: Mutex<HashMap<String, Instant>>,
}

impl BudgetDesk {
    /// A desk for the records in a namespace.
    pub fn new(namespace: String, observed: Observed, metrics: RoundMetrics) -> Self {
        let inner = Inner {
            namespace,
            observed,
            metrics,
            seen: Mutex::default(),
            last_read: tokio::sync::Mutex::default(),
            missing: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Takes in what the watch of Leases shows.
    pub fn note(&self, event: &WatchEvent<Lease>) {
        match event {
            WatchEvent::Applied(name, lease) | WatchEvent::Listed(name, lease) => {
                if let Some(policy) = policy_of(&name.name)
                    && let Some(record) = readable(lease)
                {
                    self.inner.metrics.grants(policy, Some(&record.grants));
                    lock(&self.inner.seen).insert(policy.to_owned(), record);
                }
            }
            WatchEvent::Deleted(ObjectName { name, .. }, _) => {
                if let Some(policy) = policy_of(name) {
                    self.inner.metrics.grants(policy, None);
                    lock(&self.inner.seen).remove(policy);
                }
            }
            WatchEvent::Begun | WatchEvent::Complete(_) | WatchEvent::Failed(_) => {}
        }
    }

    /// Takes in which budgets there are.
    pub fn holds(&self, budgets: &[Budget]) {
        for budget in budgets {
            self.inner.metrics.budget(budget);
        }
    }

    /// The record of a policy's budget as the watch showed it last.
    pub fn seen(&self, policy: &str) -> Option<Arc<StoredRecord>> {
        lock(&self.inner.seen).get(policy).cloned()
    }

    /// The policies in whose records a cluster has an entry.
    pub fn policies_of(&self, uid: &str) -> Vec<Arc<str>> {
        let seen = lock(&self.inner.seen);
        let with = seen
            .iter()
            .filter(|(_, record)| record.grants.clusters.contains_key(uid));
        with.map(|(policy, _)| policy.as_str().into()).collect()
    }

    /// The record of a policy's budget as it is stored now. Where many ask at once, one list answers
    /// all who asked before it began.
    pub async fn read(&self, policy: &str, writer: &Writer) -> Result<Arc<StoredRecord>, Failure> {
        let asked = Instant::now();
        let mut last = self.inner.last_read.lock().await;
        let young = last.as_ref().filter(|(began, _)| *began >= asked);
        if young.is_none() {
            let turn = writer.turn().await?;
            let began = Instant::now();
            // A list without a resource version is answered with what is stored, not from a cache.
            let selected = ListParams::default().labels(&format!("{LABEL}={KIND}"));
            let listed: ObjectList<Lease> = turn.read(self.leases().list(&selected)).await?;
            let records = listed.items.iter().filter_map(|lease| {
                let policy = policy_of(lease.metadata.name.as_deref()?)?;
                Some((policy.to_owned(), readable(lease)))
            });
            let records: ReadRecords = records.collect();
            for (policy, record) in &records {
                if let Some(record) = record {
                    self.learn(policy, record);
                }
            }
            *last = Some((began, records));
        }
        let record = last.as_ref().and_then(|(_, records)| records.get(policy));
        match record {
            Some(Some(record)) => Ok(Arc::clone(record)),
            Some(None) => Err(Failure::NotSent(format!(
                "the Lease {} cannot be read: delete it, and it is made anew",
                name_of(policy)
            ))),
            None => Ok(Arc::default()),
        }
    }

    /// Writes a record, and returns its new version.
    pub async fn write(&self, write: &RecordWrite, writer: &Writer) -> Result<String, Failure> {
        let record = StoredRecord {
            version: write.version.clone(),
            grants: write.grants.clone(),
        };
        let lease = lease(&write.policy, &self.inner.namespace, &record);
        let body = serde_json::to_vec(&lease).unwrap_or_default();
        let (leases, post) = (self.leases(), PostParams::default());
        let request = if record.version.is_empty() {
            leases.create(&post, body)
        } else {
            leases.replace(&name_of(&write.policy), &post, body)
        };
        let stored: Lease = writer.turn().await?.store(request).await?;
        let version = stored.metadata.resource_version.unwrap_or_default();
        let record = StoredRecord {
            version: version.clone(),
            ..record
        };
        self.learn(&write.policy, &Arc::new(record));
        Ok(version)
    }

    /// Takes in a record before the watch shows it.
    fn learn(&self, policy: &str, record: &Arc<StoredRecord>) {
        let mut seen = lock(&self.inner.seen);
        let known = seen.get(policy).map(|known| known.grants.revision);
        if known.is_none_or(|known| known < record.grants.revision) {
            seen.insert(policy.to_owned(), Arc::clone(record));
        }
    }

    /// Whether a cluster uses nothing any more: for a while there has been neither a RayCluster of that
    /// UID in mode central nor a pod of it.
    pub fn gone(&self, entries: impl Iterator<Item = String>) -> HashSet<String> {
        let known = self.inner.observed.read().scaled();
        let now = Instant::now();
        let mut missing = lock(&self.inner.missing);
        let missed: HashSet<String> = entries
            .filter(|uid| !known.contains(uid.as_str()))
            .collect();
        missing.retain(|uid, _| !known.contains(uid.as_str()));
        for uid in &missed {
            missing.entry(uid.clone()).or_insert(now);
        }
        let is_old = |uid: &String| missing.get(uid).is_some_and(|since| now - *since >= GONE);
        missed.into_iter().filter(is_old).collect()
    }

    fn leases(&self) -> Request {
        Request::new(Lease::url_path(&(), Some(&self.inner.namespace)))
    }
}

fn readable(lease: &Lease) -> Option<Arc<StoredRecord>> {
    match read(lease) {
        Ok(record) => Some(Arc::new(record)),
        Err(error) => {
            let lease = lease.metadata.name.as_deref();
            tracing::debug!(lease, %error, "the record of a budget cannot be read");
            None
        }
    }
}

/// A panic elsewhere leaves the maps consistent, because every change of them is a single step.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
