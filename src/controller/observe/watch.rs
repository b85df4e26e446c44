//! Watches that keep the [`Store`] as the API server has it: one per kind for all clusters, or one
//! per kind and namespace where only some namespaces may be looked at.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::kept::{Kept, Nodes, Pods, RayClusters, Watched};
use super::store::{CLUSTER_LABEL, Key, Store};
use crate::controller::words;

/// Objects per page of a list: whole pods are large until they are pruned.
const PAGE: u32 = 100;

/// The first and the longest wait after a watch failed.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// What is watched.
#[derive(Debug, Clone)]
pub enum Reach {
    /// Every namespace, and nodes.
    Everything,
    /// These namespaces only, and no nodes.
    Namespaces(Vec<String>),
    /// The pods of one RayCluster, by namespace and name; the RayCluster itself is
    /// [learnt](Observed::learn).
    PodsOf(Key),
}

/// The store, and what changes in it.
#[derive(Clone)]
pub struct Observed {
    inner: Arc<Inner>,
}

struct Inner {
    store: RwLock<Store>,
    /// Which cluster something changed for; nobody listens any more when the process stops.
    changed: UnboundedSender<Key>,
}

impl Observed {
    /// Nothing has been seen. Keys of clusters for which something changed go to `changed`.
    pub fn new(changed: UnboundedSender<Key>) -> Self {
        let inner = Inner {
            store: RwLock::default(),
            changed,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The objects. A panic elsewhere leaves the store whole enough: the next list mends it.
    pub fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.inner
            .store
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.inner
            .store
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A RayCluster was read or patched: it may be newer than what the watch told.
    pub fn learn(&self, cluster: &Value) {
        self.put(Kept::<RayClusters>::of(cluster));
    }

    /// Watches for ever. Errors are logged and tried again.
    pub async fn watch(self, client: Client, reach: Reach) {
        let mut watches = JoinSet::new();
        match reach {
            Reach::Everything => {
                watches.spawn(
                    self.clone()
                        .follow::<RayClusters>(client.clone(), Part::default()),
                );
                watches.spawn(self.clone().follow::<Pods>(client.clone(), Part::default()));
                watches.spawn(self.clone().follow::<Nodes>(client, Part::default()));
            }
            Reach::Namespaces(names) => {
                for namespace in names {
                    let part = Part {
                        namespace: Some(namespace),
                        selector: None,
                    };
                    watches.spawn(
                        self.clone()
                            .follow::<RayClusters>(client.clone(), part.clone()),
                    );
                    watches.spawn(self.clone().follow::<Pods>(client.clone(), part));
                }
            }
            Reach::PodsOf(cluster) => {
                let part = Part {
                    namespace: Some(cluster.namespace.to_string()),
                    selector: Some(format!("{CLUSTER_LABEL}={}", cluster.name)),
                };
                watches.spawn(self.clone().follow::<Pods>(client, part));
            }
        }
        // They never end; a panic in one would be a bug, and is logged as such.
        while watches.join_next().await.is_some() {}
    }

    async fn follow<K: Stored>(self, client: Client, part: Part) {
        let Part {
            namespace,
            selector,
        } = part;
        let api: Api<Kept<K>> = match &namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &()),
            None => Api::all_with(client, &()),
        };
        let mut config = watcher::Config::default().page_size(PAGE);
        config.label_selector = selector.or(K::SELECTOR.map(str::to_owned));
        let mut events = pin!(watcher(api, config));
        let mut listed: Option<BTreeSet<K::Id>> = None;
        let mut first = true;
        let mut pause = RETRY.0;
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed = Some(BTreeSet::new()),
                Ok(Event::InitApply(object)) => {
                    if let (Some(listed), Some(id)) = (&mut listed, K::id(&object)) {
                        listed.insert(id);
                    }
                    self.put(object);
                }
                Ok(Event::InitDone) => {
                    self.drop_missing::<K>(
                        namespace.as_deref(),
                        &listed.take().unwrap_or_default(),
                    );
                    if std::mem::take(&mut first) {
                        self.write().listed(K::KIND, namespace.as_deref());
                        tracing::debug!(kind = K::KIND, namespace, "first list complete");
                    }
                    pause = RETRY.0;
                }
                Ok(Event::Apply(object)) => {
                    pause = RETRY.0;
                    self.put(object);
                }
                Ok(Event::Delete(object)) => self.remove::<K>(K::id(&object)),
                Err(error) => {
                    tracing::warn!(
                        error = words::text(&error),
                        kind = K::KIND,
                        namespace,
                        "the watch failed, trying again"
                    );
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY.1);
                }
            }
        }
    }

    fn put<K: Stored>(&self, object: Kept<K>) {
        let changed = K::put(&mut self.write(), object);
        self.tell(changed);
    }

    fn remove<K: Stored>(&self, id: Option<K::Id>) {
        if let Some(id) = id {
            let changed = K::remove(&mut self.write(), &id);
            self.tell(changed);
        }
    }

    /// What was known and is not in a whole list is gone.
    fn drop_missing<K: Stored>(&self, namespace: Option<&str>, listed: &BTreeSet<K::Id>) {
        let gone: Vec<K::Id> = K::known(&self.read(), namespace)
            .into_iter()
            .filter(|id| !listed.contains(id))
            .collect();
        for id in gone {
            self.remove::<K>(Some(id));
        }
    }

    fn tell(&self, cluster: Option<Key>) {
        if let Some(cluster) = cluster {
            let _ = self.inner.changed.send(cluster);
        }
    }
}

/// What part of a kind a watch is of.
#[derive(Debug, Clone, Default)]
struct Part {
    namespace: Option<String>,
    selector: Option<String>,
}

/// How a kind is stored.
trait Stored: Watched + Sized {
    type Id: Ord + Send + Sync;
    const SELECTOR: Option<&'static str>;
    fn id(object: &Kept<Self>) -> Option<Self::Id>;
    fn put(store: &mut Store, object: Kept<Self>) -> Option<Key>;
    fn remove(store: &mut Store, id: &Self::Id) -> Option<Key>;
    fn known(store: &Store, namespace: Option<&str>) -> BTreeSet<Self::Id>;
}

impl Stored for RayClusters {
    type Id = Key;
    const SELECTOR: Option<&'static str> = None;
    fn id(object: &Kept<Self>) -> Option<Key> {
        Key::of(&object.meta)
    }
    fn put(store: &mut Store, object: Kept<Self>) -> Option<Key> {
        store.put_cluster(&object)
    }
    fn remove(store: &mut Store, id: &Key) -> Option<Key> {
        store.remove_cluster(id)
    }
    fn known(store: &Store, namespace: Option<&str>) -> BTreeSet<Key> {
        store.clusters_in(namespace)
    }
}

impl Stored for Pods {
    type Id = Key;
    const SELECTOR: Option<&'static str> = Some(CLUSTER_LABEL);
    fn id(object: &Kept<Self>) -> Option<Key> {
        Key::of(&object.meta)
    }
    fn put(store: &mut Store, object: Kept<Self>) -> Option<Key> {
        store.put_pod(object)
    }
    fn remove(store: &mut Store, id: &Key) -> Option<Key> {
        store.remove_pod(id)
    }
    fn known(store: &Store, namespace: Option<&str>) -> BTreeSet<Key> {
        store.pods_in(namespace)
    }
}

impl Stored for Nodes {
    type Id = Arc<str>;
    const SELECTOR: Option<&'static str> = None;
    fn id(object: &Kept<Self>) -> Option<Arc<str>> {
        object.meta.name.as_deref().map(Arc::from)
    }
    fn put(store: &mut Store, object: Kept<Self>) -> Option<Key> {
        store.put_node(object);
        None
    }
    fn remove(store: &mut Store, id: &Arc<str>) -> Option<Key> {
        store.remove_node(id);
        None
    }
    fn known(store: &Store, _: Option<&str>) -> BTreeSet<Arc<str>> {
        store.node_names()
    }
}
