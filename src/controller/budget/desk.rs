//! The records of all budgets, as the watch showed them last, and as they are read and written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Resource as _;
use kube::api::{ListParams, PostParams, Request};
use kube::core::ObjectList;

use super::stored::{KIND, StoredRecord, lease, name_of, policy_of, read};
use crate::apiserver::{ObjectName, WatchEvent};
use crate::budget::book::RecordWrite;
use crate::budget::keeper::SETTLING_S;
use crate::budget::limit::Budget;
use crate::controller::act::writer::Writer;
use crate::controller::lease::stored::LABEL;
use crate::controller::metrics::RoundMetrics;
use crate::controller::observe::Observed;
use crate::flow_control::queue::Flow;
use crate::reconcile::Failure;
use crate::seconds::WATCH_LAG_S;

/// For how many seconds a cluster with an entry has to be unknown here until its entry is removed: as long as
/// a watch that will show it may lag.
const GONE_S: f64 = WATCH_LAG_S;

/// For how long a record that could not be read is not read again, unless the watch shows another one.
const UNREADABLE: Duration = Duration::from_secs(10);

/// For how long it is not looked up anew which clusters there are.
const KNOWN: Duration = Duration::from_secs(1);

/// The records of all budgets, for all clusters of the process. Clones share them.
#[derive(Clone)]
pub struct BudgetDesk {
    inner: Arc<Inner>,
}

/// By policy; nothing for a record that cannot be read.
type ReadRecords = BTreeMap<String, Option<Arc<StoredRecord>>>;

/// The UIDs of clusters that use something.
type KnownClusters = Arc<HashSet<Arc<str>>>;

struct Inner {
    namespace: String,
    /// The flow of the lists of all records, which no cluster has.
    flow: Flow,
    observed: Observed,
    metrics: RoundMetrics,
    seen: Mutex<BTreeMap<String, Arc<StoredRecord>>>,
    /// The policies with a record in the list that is being read.
    listed: Mutex<BTreeSet<String>>,
    /// When the watch showed any Lease last. Those of replicas are renewed every few seconds.
    heard: Mutex<Option<Instant>>,
    /// The last read, and when it began.
    last_read: tokio::sync::Mutex<Option<(Instant, ReadRecords)>>,
    /// When records were last read that cannot be, by policy.
    unreadable: Mutex<BTreeMap<String, Instant>>,
    /// The clusters that use something, and when they were looked up: all pods are gone through for it, and
    /// at a full budget all clusters that want more ask at each look.
    known: Mutex<Option<(Instant, KnownClusters)>>,
    /// Since when clusters with entries are not known, by UID.
    missing: Mutex<HashMap<String, Instant>>,
}

impl BudgetDesk {
    /// A desk for the records in a namespace.
    pub fn new(namespace: String, observed: Observed, metrics: RoundMetrics) -> Self {
        let inner = Inner {
            flow: format!("{namespace}/budgets").into(),
            namespace,
            observed,
            metrics,
            seen: Mutex::default(),
            listed: Mutex::default(),
            heard: Mutex::default(),
            last_read: tokio::sync::Mutex::default(),
            unreadable: Mutex::default(),
            known: Mutex::default(),
            missing: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Takes in what the watch of Leases shows.
    pub fn note(&self, event: &WatchEvent<Lease>) {
        if !matches!(event, WatchEvent::Begun | WatchEvent::Failed(_)) {
            *lock(&self.inner.heard) = Some(Instant::now());
        }
        match event {
            WatchEvent::Applied(name, lease) => self.saw(name, lease),
            WatchEvent::Listed(name, lease) => {
                let listed = policy_of(&name.name).map(str::to_owned);
                lock(&self.inner.listed).extend(listed);
                self.saw(name, lease);
            }
            WatchEvent::Deleted(ObjectName { name, .. }, _) => {
                if let Some(policy) = policy_of(name) {
                    self.is_gone(policy);
                }
            }
            WatchEvent::Begun => lock(&self.inner.listed).clear(),
            // A record that was deleted while nothing was watched is only missing.
            WatchEvent::Complete(_) => {
                let listed = std::mem::take(&mut *lock(&self.inner.listed));
                let known: Vec<String> = lock(&self.inner.seen).keys().cloned().collect();
                for policy in known.iter().filter(|policy| !listed.contains(*policy)) {
                    self.is_gone(policy);
                }
            }
            WatchEvent::Failed(_) => {}
        }
    }

    fn saw(&self, name: &ObjectName, lease: &Lease) {
        if let Some(policy) = policy_of(&name.name)
            && let Some(record) = readable(lease)
        {
            self.inner.metrics.grants(policy, Some(&record.grants));
            lock(&self.inner.unreadable).remove(policy);
            lock(&self.inner.seen).insert(policy.to_owned(), record);
        }
    }

    fn is_gone(&self, policy: &str) {
        self.inner.metrics.grants(policy, None);
        lock(&self.inner.unreadable).remove(policy);
        lock(&self.inner.seen).remove(policy);
    }

    /// Takes in which budgets there are.
    pub fn holds(&self, budgets: &[Budget]) {
        for budget in budgets {
            self.inner.metrics.budget(budget);
        }
    }

    /// Whether what the watch has shown is no older than a watch may lag. If it is, a record may have been
    /// deleted and made anew since, and all whom it concerns count on that being known everywhere.
    pub fn is_current(&self) -> bool {
        let heard = *lock(&self.inner.heard);
        heard.is_some_and(|at| at.elapsed().as_secs_f64() < WATCH_LAG_S)
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
        let unreadable = || {
            Failure::NotSent(format!(
                "the Lease {} cannot be read: delete it, and it is made anew",
                name_of(policy)
            ))
        };
        let since = lock(&self.inner.unreadable).get(policy).copied();
        if since.is_some_and(|since| since.elapsed() < UNREADABLE) {
            return Err(unreadable());
        }
        let asked = Instant::now();
        let mut last = self.inner.last_read.lock().await;
        let young = last.as_ref().filter(|(began, _)| *began >= asked);
        if young.is_none() {
            // All clusters that ask wait for this list, so it waits for nothing that concerns only
            // one of them.
            let turn = writer.turn_of(&self.inner.flow).await?;
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
            Some(None) => {
                lock(&self.inner.unreadable).insert(policy.to_owned(), asked);
                Err(unreadable())
            }
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
        if write.grants.is_made() {
            let (policy, seconds) = (&*write.policy, SETTLING_S);
            tracing::info!(
                policy,
                seconds,
                "the record of a budget was made: for that time clusters say in it what they use, and none grows"
            );
        }
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
        if self.inner.observed.lag().as_secs_f64() > GONE_S {
            return HashSet::new();
        }
        let known = self.known();
        let now = Instant::now();
        let seen = lock(&self.inner.seen);
        let mut missing = lock(&self.inner.missing);
        let missed: HashSet<String> = entries
            .filter(|uid| !known.contains(uid.as_str()))
            .collect();
        // A cluster without an entry is not asked about again.
        let has_entry = |uid: &str| {
            let mut records = seen.values();
            records.any(|record| record.grants.clusters.contains_key(uid))
        };
        missing.retain(|uid, _| !known.contains(uid.as_str()) && has_entry(uid));
        for uid in &missed {
            missing.entry(uid.clone()).or_insert(now);
        }
        let is_old = |since: &Instant| (now - *since).as_secs_f64() >= GONE_S;
        let is_old = |uid: &String| missing.get(uid).is_some_and(is_old);
        missed.into_iter().filter(is_old).collect()
    }

    fn known(&self) -> KnownClusters {
        let mut known = lock(&self.inner.known);
        if let Some((at, all)) = known.as_ref()
            && at.elapsed() < KNOWN
        {
            return Arc::clone(all);
        }
        let all = Arc::new(self.inner.observed.read().scaled());
        *known = Some((Instant::now(), Arc::clone(&all)));
        all
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

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves the maps consistent, because every change of them is a single step.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::{Request as Sent, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::apiserver::{Gate, Patience, Watches};
    use crate::budget::record::{Grant, Grants};
    use crate::controller::act::writer::Requests;
    use crate::controller::observe::Key;

    fn desk() -> BudgetDesk {
        let (tell, _) = mpsc::unbounded_channel();
        let namespace = "rayfit-system".to_owned();
        BudgetDesk::new(namespace, Observed::new(tell), RoundMetrics::default())
    }

    /// The Lease of a record in which these clusters have entries.
    fn record(uids: &[&str]) -> (ObjectName, Lease) {
        let entry = |uid: &&str| ((*uid).to_owned(), Grant::default());
        let record = StoredRecord {
            version: "1".to_owned(),
            grants: Grants {
                revision: 1,
                clusters: uids.iter().map(entry).collect(),
                ..Grants::default()
            },
        };
        let name = ObjectName {
            namespace: Some("rayfit-system".to_owned()),
            name: name_of("team"),
        };
        (name, lease("team", "rayfit-system", &record))
    }

    #[test]
    fn a_record_that_was_deleted_while_nothing_was_watched_is_not_known_any_more() {
        let desk = desk();
        let (name, lease) = record(&["u"]);
        desk.note(&WatchEvent::Begun);
        desk.note(&WatchEvent::Listed(name, lease));
        desk.note(&WatchEvent::Complete(None));
        assert_eq!(desk.policies_of("u").len(), 1);
        desk.note(&WatchEvent::Begun);
        assert!(desk.seen("team").is_some(), "the list is not complete");
        desk.note(&WatchEvent::Complete(None));
        assert!(desk.seen("team").is_none());
    }

    #[test]
    fn many_who_ask_at_once_have_all_pods_gone_through_once() {
        let desk = desk();
        let first = desk.known();
        *lock(&desk.inner.known) = Some((Instant::now(), Arc::clone(&first)));
        assert!(Arc::ptr_eq(&first, &desk.known()));
        let earlier = Instant::now().checked_sub(KNOWN).unwrap();
        *lock(&desk.inner.known) = Some((earlier, Arc::clone(&first)));
        assert!(!Arc::ptr_eq(&first, &desk.known()), "they come and go");
    }

    #[test]
    fn a_cluster_without_an_entry_is_not_remembered() {
        let desk = desk();
        for uids in [&["gone"][..], &[]] {
            let (name, lease) = record(uids);
            desk.note(&WatchEvent::Applied(name, lease));
            assert!(desk.gone(uids.iter().map(ToString::to_string)).is_empty());
            assert_eq!(lock(&desk.inner.missing).len(), uids.len());
        }
    }

    /// Its RayCluster may have been made since, and another replica may scale it.
    #[tokio::test(start_paused = true)]
    async fn no_cluster_counts_as_gone_while_a_watch_may_not_show_it() {
        let desk = desk();
        let (name, lease) = record(&["gone"]);
        desk.note(&WatchEvent::Applied(name, lease));
        let gone = |seconds| {
            let since = Instant::now().checked_sub(Duration::from_secs(seconds));
            lock(&desk.inner.missing).insert("gone".to_owned(), since.unwrap());
            desk.gone(["gone".to_owned()].into_iter())
        };
        assert_eq!([100, 200].map(|seconds| gone(seconds).len()), [0, 1]);
        let beacon = Watches::default().open("pods", Duration::from_secs(1));
        desk.inner.observed.watched_by(Arc::new(beacon));
        assert_eq!(gone(200).len(), 1);
        tokio::time::advance(Duration::from_secs(200)).await;
        assert!(gone(200).is_empty(), "it hangs");
    }

    #[test]
    fn what_a_watch_has_shown_counts_once_it_has_shown_anything() {
        let desk = desk();
        desk.note(&WatchEvent::Begun);
        assert!(!desk.is_current());
        let (name, lease) = record(&[]);
        desk.note(&WatchEvent::Listed(name, lease));
        assert!(desk.is_current());
        *lock(&desk.inner.heard) = Instant::now().checked_sub(Duration::from_secs(200));
        assert!(!desk.is_current());
    }

    /// An API server with these Leases, and how often they were listed.
    fn requests(gate: &Gate, leases: &[Lease]) -> (Requests, Arc<AtomicUsize>) {
        let list = json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {}, "items": leases});
        let lists = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&lists);
        let service = tower::service_fn(move |_: Sent<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let body = Body::from(list.to_string().into_bytes());
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let requests = Requests::new(Client::new(service, "ray"), gate.clone());
        (requests, lists)
    }

    /// Each cluster under the budget asks at each of its looks.
    #[tokio::test]
    async fn a_record_that_cannot_be_read_is_not_read_at_every_look() {
        let (desk, (name, whole)) = (desk(), record(&["u"]));
        let mut broken = whole.clone();
        let text = [("rayfit.dev/budget".to_owned(), "{".to_owned())];
        broken.metadata.annotations = Some(text.into());
        let gate = Gate::new(1000, 1000, Patience::default());
        let (requests, lists) = requests(&gate, &[broken]);
        let writer = Writer::new(requests, Key::new("ray", "demo"), None);
        for _ in 0..10 {
            assert!(desk.read("team", &writer).await.is_err());
        }
        assert_eq!(lists.load(Ordering::Relaxed), 1);
        desk.note(&WatchEvent::Applied(name, whole));
        assert!(desk.read("team", &writer).await.is_err());
        assert_eq!(lists.load(Ordering::Relaxed), 2, "it was mended");
    }

    /// The webhook of one tenant asks for patience: the records are read for all, and wait for
    /// nobody.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_has_to_wait_keeps_no_other_from_the_records() {
        let gate = Gate::new(1000, 1000, Patience::default());
        let (desk, (requests, _)) = (desk(), requests(&gate, &[]));
        let writer = |namespace: &str| {
            let key = Key::new(namespace, "ray");
            Writer::new(requests.clone(), key, None)
        };
        let (slow, neighbour) = (writer("slow"), writer("neighbour"));
        let flow = slow.key().to_string().into();
        gate.ask_patience(&flow, Some(Duration::from_mins(1)));
        let start = tokio::time::Instant::now();
        let reads = tokio::join!(desk.read("team", &slow), desk.read("team", &neighbour));
        assert!(reads.0.is_ok() && reads.1.is_ok(), "{reads:?}");
        assert!(start.elapsed() < Duration::from_secs(1), "no longer wait");
    }
}
