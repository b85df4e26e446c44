//! The watches that keep the [`Store`] like the API server: one per kind for all clusters, or one
//! per kind and namespace where only some namespaces may be read.

use std::collections::{BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use kube::Resource as _;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{JoinError, JoinSet};

use super::kept::{KeptObject, Watched, WatchedNodes, WatchedPods, WatchedRayClusters};
use super::key::Key;
use super::store::Store;
use crate::apiserver::{Beacon, Informers, ObjectName, Selection, WatchEvent};
use crate::facts::pods::CLUSTER as CLUSTER_LABEL;
use crate::snapshot::node_prospect::NodeProspect;
use crate::snapshot::prospect_reader::AwaitingPod;

/// The scope of the watches.
#[derive(Debug, Clone)]
pub enum WatchScope {
    /// All namespaces, and Kubernetes nodes.
    Everything,
    /// These namespaces only, and no Kubernetes nodes.
    Namespaces(Vec<String>),
    /// The pods of one RayCluster, by namespace and name; the RayCluster itself is
    /// [learnt](Observed::learn).
    PodsOf(Key),
}

/// The store, with the notification of its changes.
#[derive(Clone)]
pub struct Observed {
    inner: Arc<Inner>,
}

struct Inner {
    store: RwLock<Store>,
    /// The state of the watches of RayClusters and pods.
    beacons: Mutex<Vec<Arc<Beacon>>>,
    /// The keys of changed clusters. Nobody receives them any more once the process stops.
    changed: UnboundedSender<Key>,
}

impl Observed {
    /// An empty store. The keys of clusters in which something changed go to `changed`.
    pub fn new(changed: UnboundedSender<Key>) -> Self {
        let inner = Inner {
            store: RwLock::default(),
            beacons: Mutex::default(),
            changed,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The stored objects.
    pub fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.inner
            .store
            .read()
            // A panic elsewhere leaves the store usable: the next list repairs it.
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The time for which nothing has been heard of RayClusters or pods, whichever is longer: the
    /// stored objects may be as old.
    pub fn lag(&self) -> Duration {
        let beacons = self.inner.beacons.lock();
        let beacons = beacons.unwrap_or_else(PoisonError::into_inner);
        let silences = beacons.iter().map(|beacon| beacon.silence());
        silences.max().unwrap_or_default()
    }

    /// Takes in the state of a watch of RayClusters or pods.
    pub(crate) fn watched_by(&self, beacon: Arc<Beacon>) {
        let beacons = self.inner.beacons.lock();
        let mut beacons = beacons.unwrap_or_else(PoisonError::into_inner);
        beacons.push(beacon);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.inner
            .store
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a RayCluster that was read or patched, since it may be newer than the watch's.
    pub fn learn(&self, cluster: &Value) {
        self.put(KeptObject::<WatchedRayClusters>::of(cluster));
    }

    /// Takes in what node autoscalers say of pods of a namespace that wait for a Kubernetes node.
    pub(super) fn put_prospects(
        &self,
        namespace: &str,
        asked: &HashMap<String, AwaitingPod>,
        said: HashMap<String, Vec<NodeProspect>>,
    ) {
        let changed = self.write().put_prospects(namespace, asked, said);
        self.tell(changed);
    }

    /// As if all pods had been listed.
    #[cfg(test)]
    pub(crate) fn has_listed_pods(&self) {
        self.write().listed(WatchedPods::KIND, None);
    }

    /// Watches for ever. Failures are tried again; a panic in one watch ends all of them.
    pub async fn watch(self, informers: Informers, reach: WatchScope) {
        let mut watches = JoinSet::new();
        match reach {
            WatchScope::Everything => {
                let all = Part::default;
                watches.spawn(
                    self.clone()
                        .follow::<WatchedRayClusters>(informers.clone(), all()),
                );
                watches.spawn(self.clone().follow::<WatchedPods>(informers.clone(), all()));
                watches.spawn(self.clone().follow::<WatchedNodes>(informers, all()));
            }
            WatchScope::Namespaces(names) => {
                for namespace in names {
                    let part = Part {
                        namespace: Some(namespace),
                        selector: None,
                    };
                    watches.spawn(
                        self.clone()
                            .follow::<WatchedRayClusters>(informers.clone(), part.clone()),
                    );
                    watches.spawn(self.clone().follow::<WatchedPods>(informers.clone(), part));
                }
            }
            WatchScope::PodsOf(cluster) => {
                let part = Part {
                    namespace: Some(cluster.namespace.to_string()),
                    selector: Some(format!("{CLUSTER_LABEL}={}", cluster.name)),
                };
                watches.spawn(self.clone().follow::<WatchedPods>(informers, part));
            }
        }
        while let Some(ended) = watches.join_next().await {
            if let Err(Ok(panic)) = ended.map_err(JoinError::try_into_panic) {
                resume_unwind(panic);
            }
        }
    }

    async fn follow<K: Stored>(self, informers: Informers, part: Part) {
        let Part {
            namespace,
            selector,
        } = part;
        let path = KeptObject::<K>::url_path(&(), namespace.as_deref());
        let selection = Selection {
            labels: selector.or(K::SELECTOR.map(str::to_owned)),
            ..Selection::all(K::TITLE, path)
        };
        let mut listed: BTreeSet<K::Id> = BTreeSet::new();
        let mut first = true;
        let observed = self.clone();
        let reading = informers.read(selection, Some::<KeptObject<K>>, move |event| match event {
            WatchEvent::Begun => listed = BTreeSet::new(),
            WatchEvent::Listed(name, object) => {
                listed.extend(K::id(&name));
                self.put::<K>(object);
            }
            WatchEvent::Complete(version) => {
                self.drop_missing::<K>(namespace.as_deref(), &listed, version.as_deref());
                listed = BTreeSet::new();
                if std::mem::take(&mut first) {
                    self.write().listed(K::KIND, namespace.as_deref());
                    tracing::debug!(kind = K::KIND, namespace, "first list complete");
                }
            }
            WatchEvent::Applied(_, object) => self.put::<K>(object),
            WatchEvent::Deleted(name, version) => {
                if let Some(id) = K::id(&name) {
                    self.remove::<K>(&id, version.as_deref());
                }
            }
            WatchEvent::Failed(_) => {}
        });
        if K::KIND != WatchedNodes::KIND {
            observed.watched_by(Arc::clone(reading.beacon()));
        }
        match reading.forever().await {}
    }

    fn put<K: Stored>(&self, object: KeptObject<K>) {
        let changed = K::put(&mut self.write(), object);
        self.tell(changed);
    }

    fn remove<K: Stored>(&self, id: &K::Id, version: Option<&str>) {
        let changed = K::remove(&mut self.write(), id, version);
        self.tell(changed);
    }

    /// Removes the known objects that are missing from a complete list.
    fn drop_missing<K: Stored>(
        &self,
        namespace: Option<&str>,
        listed: &BTreeSet<K::Id>,
        version: Option<&str>,
    ) {
        let gone: Vec<K::Id> = K::known(&self.read(), namespace)
            .into_iter()
            .filter(|id| !listed.contains(id))
            .collect();
        for id in gone {
            self.remove::<K>(&id, version);
        }
    }

    fn tell(&self, clusters: BTreeSet<Key>) {
        for cluster in clusters {
            let _ = self.inner.changed.send(cluster);
        }
    }
}

/// The part of a kind that a watch covers.
#[derive(Debug, Clone, Default)]
struct Part {
    namespace: Option<String>,
    selector: Option<String>,
}

/// The storage of objects of a kind.
trait Stored: Watched + Sized {
    type Id: Ord + Send + Sync;
    const TITLE: &'static str;
    const SELECTOR: Option<&'static str>;
    fn id(name: &ObjectName) -> Option<Self::Id>;
    /// Takes in an object; returns the clusters that it concerns.
    fn put(store: &mut Store, object: KeptObject<Self>) -> BTreeSet<Key>;
    /// Takes in that an object is gone, as of `version`.
    fn remove(store: &mut Store, id: &Self::Id, version: Option<&str>) -> BTreeSet<Key>;
    fn known(store: &Store, namespace: Option<&str>) -> BTreeSet<Self::Id>;
}

impl Stored for WatchedRayClusters {
    type Id = Key;
    const TITLE: &'static str = "RayClusters";
    const SELECTOR: Option<&'static str> = None;
    fn id(name: &ObjectName) -> Option<Key> {
        key_of(name)
    }
    fn put(store: &mut Store, object: KeptObject<Self>) -> BTreeSet<Key> {
        store.put_cluster(&object).into_iter().collect()
    }
    fn remove(store: &mut Store, id: &Key, version: Option<&str>) -> BTreeSet<Key> {
        store.remove_cluster(id, version).into_iter().collect()
    }
    fn known(store: &Store, namespace: Option<&str>) -> BTreeSet<Key> {
        store.clusters_in(namespace)
    }
}

impl Stored for WatchedPods {
    type Id = Key;
    const TITLE: &'static str = "pods of Ray clusters";
    const SELECTOR: Option<&'static str> = Some(CLUSTER_LABEL);
    fn id(name: &ObjectName) -> Option<Key> {
        key_of(name)
    }
    fn put(store: &mut Store, object: KeptObject<Self>) -> BTreeSet<Key> {
        store.put_pod(object).into_iter().collect()
    }
    fn remove(store: &mut Store, id: &Key, _: Option<&str>) -> BTreeSet<Key> {
        store.remove_pod(id).into_iter().collect()
    }
    fn known(store: &Store, namespace: Option<&str>) -> BTreeSet<Key> {
        store.pods_in(namespace)
    }
}

impl Stored for WatchedNodes {
    type Id = Arc<str>;
    const TITLE: &'static str = "nodes";
    const SELECTOR: Option<&'static str> = None;
    fn id(name: &ObjectName) -> Option<Arc<str>> {
        Some(name.name.as_str().into())
    }
    fn put(store: &mut Store, object: KeptObject<Self>) -> BTreeSet<Key> {
        store.put_node(object)
    }
    fn remove(store: &mut Store, id: &Arc<str>, _: Option<&str>) -> BTreeSet<Key> {
        store.remove_node(id);
        BTreeSet::new()
    }
    fn known(store: &Store, _: Option<&str>) -> BTreeSet<Arc<str>> {
        store.node_names()
    }
}

fn key_of(name: &ObjectName) -> Option<Key> {
    Key::new(name.namespace.as_deref()?, &name.name).ok()
}
