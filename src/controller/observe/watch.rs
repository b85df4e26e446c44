//! The watches that keep the [`Store`] like the API server: one per kind for all clusters, or one
//! per kind and namespace where only some namespaces may be read.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use rayfit_core::dns_name::Key;
use rayfit_core::facts::pods::CLUSTER as CLUSTER_LABEL;
use rayfit_core::snapshot::allowed::AllowedCluster;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{JoinError, JoinSet};

use super::kept::{KeptObject, StoredKind};
use super::store::Store;
use crate::apiserver::{Informers, ObjectName, Selection, WatchEvent};

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
    store: Arc<RwLock<Store>>,
    /// The keys of changed clusters. Nobody receives them any more once the process stops.
    changed: UnboundedSender<Key>,
}

impl Observed {
    /// An empty store. The keys of clusters in which something changed go to `changed`.
    pub fn new(changed: UnboundedSender<Key>) -> Self {
        Self {
            store: Arc::default(),
            changed,
        }
    }

    /// The stored objects.
    pub fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read()
    }

    /// Takes in a RayCluster that was read or patched, since it may be newer than the watch's.
    pub fn learn(&self, cluster: &Value) {
        let kind = StoredKind::RayClusters;
        let object = KeptObject::of(kind, cluster);
        self.change(|store| store.put(kind, object));
    }

    /// Changes the store, and tells of the clusters that this concerns.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Store) -> BTreeSet<Key>) {
        let changed = change(&mut self.store.write());
        for cluster in changed {
            let _ = self.changed.send(cluster);
        }
    }

    /// Watches for ever. Failures are tried again; a panic in one watch ends all of them.
    pub async fn watch(self, informers: Informers, reach: WatchScope) {
        use StoredKind::{Nodes, Pods, RayClusters};
        // Each kind with its namespace, or all of them.
        let parts: Vec<(StoredKind, Option<String>)> = match &reach {
            WatchScope::Everything => vec![(RayClusters, None), (Pods, None), (Nodes, None)],
            WatchScope::Namespaces(names) => (names.iter())
                .flat_map(|name| {
                    [
                        (RayClusters, Some(name.clone())),
                        (Pods, Some(name.clone())),
                    ]
                })
                .collect(),
            WatchScope::PodsOf(cluster) => vec![(Pods, Some(cluster.namespace.to_string()))],
        };
        let mut watches = JoinSet::new();
        for (kind, namespace) in parts {
            let within = namespace.as_deref();
            let within = within.map_or(String::new(), |name| format!("namespaces/{name}/"));
            let (title, path) = match kind {
                RayClusters => (
                    "RayClusters",
                    format!("/apis/ray.io/v1/{within}rayclusters"),
                ),
                Pods => ("pods of Ray clusters", format!("/api/v1/{within}pods")),
                Nodes => ("nodes", format!("/api/v1/{within}nodes")),
            };
            let labels = match &reach {
                WatchScope::PodsOf(cluster) => Some(format!("{CLUSTER_LABEL}={}", cluster.name)),
                _ => (kind == Pods).then(|| CLUSTER_LABEL.to_owned()),
            };
            let selection = Selection {
                labels,
                ..Selection::all(title, path)
            };
            let (observed, informers) = (self.clone(), informers.clone());
            watches.spawn(observed.follow(informers, kind, namespace, selection));
        }
        while let Some(ended) = watches.join_next().await {
            if let Err(Ok(panic)) = ended.map_err(JoinError::try_into_panic) {
                resume_unwind(panic);
            }
        }
    }

    async fn follow(
        self,
        informers: Informers,
        kind: StoredKind,
        namespace: Option<String>,
        selection: Selection,
    ) {
        let mut listed: BTreeSet<ObjectName> = BTreeSet::new();
        let mut first = true;
        let on = move |event: WatchEvent<KeptObject>| match event {
            WatchEvent::Begun => listed = BTreeSet::new(),
            WatchEvent::Listed(name, object) => {
                listed.insert(name);
                self.change(|store| store.put(kind, object));
            }
            WatchEvent::Complete(version) => {
                // Known objects that are missing from a complete list are gone.
                let names = self.store.read().names(kind, namespace.as_deref());
                for name in names.difference(&listed) {
                    self.change(|store| store.remove(kind, name, version.as_deref()));
                }
                listed = BTreeSet::new();
                if std::mem::take(&mut first) {
                    self.store.write().listed(kind, namespace.as_deref());
                    tracing::debug!(?kind, namespace, "first list complete");
                }
            }
            WatchEvent::Applied(_, object) => self.change(|store| store.put(kind, object)),
            WatchEvent::Deleted(name, version) => {
                self.change(|store| store.remove(kind, &name, version.as_deref()));
            }
            WatchEvent::Failed(_) => {}
        };
        // Of a RayCluster, more than what is kept is not even read.
        let reading = if kind == StoredKind::RayClusters {
            let keep = move |cluster: AllowedCluster| Some(KeptObject::of(kind, &cluster.0));
            informers.read(selection, keep, on)
        } else {
            let keep = move |object: Value| Some(KeptObject::of(kind, &object));
            informers.read(selection, keep, on)
        };
        match reading.forever().await {}
    }
}
