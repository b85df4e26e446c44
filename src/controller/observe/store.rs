//! The store: the objects as they were last seen, indexed by cluster and by Kubernetes node.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::api::ObjectMeta;
use rayfit_core::dns_name::{DnsName, Key};
use rayfit_core::facts::pods::CLUSTER as CLUSTER_LABEL;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::ray::{ReconcileMode, ippr, reconcile};
use rayfit_core::reconcile::ownership::handover;
use rayfit_core::snapshot::kube_node::{add_load, load_of};
use rayfit_core::snapshot::ownership::controller;
use rayfit_core::snapshot::pod::Pod;
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::prospect_reader::AwaitingPod;
use rayfit_core::snapshot::{KubeNode, NodeLoads};

use super::awaiting::Awaiting;
use super::bytes::ClusterBytes;
use super::kept::{KeptObject, StoredKind, mode_of};
use super::texts::ClusterTexts;
use super::tombstones::Tombstones;
use crate::apiserver::ObjectName;

/// A RayCluster as it is kept in the store.
#[derive(Debug, Clone)]
pub struct ClusterEntry {
    /// Its UID.
    pub uid: Arc<str>,
    /// Its mode, by the annotation `rayfit.dev/reconcile`.
    pub mode: ReconcileMode,
    /// The annotation `rayfit.dev/scaled-by`, the hand-over record.
    pub scaled_by: Option<Arc<str>>,
    /// The annotation `ray.io/ippr`, which allows in-place resizes, is there.
    pub grows: bool,
    version: String,
    json: Arc<[u8]>,
}

pub(super) struct PodEntry {
    /// The RayCluster that the pod's namespace and label name, if one can have that name.
    pub(super) cluster: Option<Key>,
    /// The UID of the RayCluster that controls the pod.
    pub(super) controller: Option<Arc<str>>,
    node: Option<Arc<str>>,
    /// The resources that the pod takes on that Kubernetes node.
    load: Amounts,
    /// Its wait for a Kubernetes node, while it has none.
    pub(super) awaiting: Option<Box<Awaiting>>,
    pub(super) json: Arc<[u8]>,
}

impl PodEntry {
    /// Checks that this is a pod of the existing RayCluster, by its owner and not only by its label,
    /// which anybody can write.
    pub(super) fn is_of(&self, key: &Key, cluster: &ClusterEntry) -> bool {
        self.cluster.as_ref() == Some(key) && self.controller.as_deref() == Some(&*cluster.uid)
    }
}

/// The key of an object; `None` if it has no namespace or no name.
fn key_of(meta: &ObjectMeta) -> Option<Key> {
    Key::new(meta.namespace.as_deref()?, meta.name.as_deref()?).ok()
}

/// All objects that were seen.
#[derive(Default)]
pub struct Store {
    /// The known RayClusters.
    pub clusters: HashMap<Key, ClusterEntry>,
    pub(super) pods: HashMap<Key, PodEntry>,
    /// The bytes of the texts in `clusters`.
    cluster_bytes: ClusterBytes,
    by_cluster: HashMap<Key, BTreeSet<DnsName>>,
    by_node: HashMap<Arc<str>, BTreeSet<Key>>,
    nodes: HashMap<Arc<str>, Arc<[u8]>>,
    /// The names of the Kubernetes nodes that are about to leave or in trouble.
    closed: BTreeSet<Arc<str>>,
    /// The pods that the scheduler has found no room for.
    pub(super) unscheduled: BTreeSet<Key>,
    /// The kinds, each with a namespace or `None` for all, of which a first list is complete.
    listed: BTreeSet<(StoredKind, Option<String>)>,
    tombstones: Tombstones,
}

impl Store {
    /// Takes in that all objects of a kind were listed, of one namespace or of all.
    pub fn listed(&mut self, kind: StoredKind, namespace: Option<&str>) {
        self.listed.insert((kind, namespace.map(str::to_owned)));
    }

    /// Returns whether the pods of a namespace are known, so that a pod that is not known does not exist.
    pub fn knows_pods(&self, namespace: &str) -> bool {
        let mut parts = [None, Some(namespace.to_owned())].into_iter();
        parts.any(|part| self.listed.contains(&(StoredKind::Pods, part)))
    }

    /// Takes in an object that was created or changed; returns the keys of the clusters that it concerns.
    pub fn put(&mut self, kind: StoredKind, object: KeptObject) -> BTreeSet<Key> {
        match kind {
            StoredKind::RayClusters => self.put_cluster(&object).into_iter().collect(),
            StoredKind::Pods => self.put_pod(object).into_iter().collect(),
            StoredKind::Nodes => self.put_node(object),
        }
    }

    /// Takes in that an object is gone as of a version: that of the list in which it is missing, or of its deletion.
    /// Returns the keys of the clusters that it concerns.
    pub fn remove(
        &mut self,
        kind: StoredKind,
        name: &ObjectName,
        version: Option<&str>,
    ) -> BTreeSet<Key> {
        let namespace = name.namespace.as_deref().unwrap_or_default();
        let key = Key::new(namespace, &name.name).ok();
        let concerned = match kind {
            StoredKind::RayClusters => key.and_then(|key| self.remove_cluster(&key, version)),
            StoredKind::Pods => key.and_then(|key| self.remove_pod(&key)),
            StoredKind::Nodes => {
                self.nodes.remove(name.name.as_str());
                self.closed.remove(name.name.as_str());
                None
            }
        };
        concerned.into_iter().collect()
    }

    /// The known objects of a kind, of one namespace or of all.
    pub fn names(&self, kind: StoredKind, namespace: Option<&str>) -> BTreeSet<ObjectName> {
        let named = |namespace: Option<&str>, name: &str| ObjectName {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let is_in = |key: &&Key| namespace.is_none_or(|namespace| **key.namespace == *namespace);
        let name = |key: &Key| named(Some(&key.namespace), &key.name);
        match kind {
            StoredKind::RayClusters => self.clusters.keys().filter(is_in).map(name).collect(),
            StoredKind::Pods => self.pods.keys().filter(is_in).map(name).collect(),
            StoredKind::Nodes => self.nodes.keys().map(|name| named(None, name)).collect(),
        }
    }

    /// Takes in a RayCluster that was created or changed; returns its key if it is new.
    pub fn put_cluster(&mut self, object: &KeptObject) -> Option<Key> {
        let key = key_of(&object.meta)?;
        let annotation = |name: &str| object.meta.annotations.as_ref()?.get(name);
        let mode = mode_of(annotation(reconcile::ANNOTATION).map(String::as_str));
        let replaced = self
            .clusters
            .get(&key)
            .map_or(0, |stored| stored.json.len());
        let bytes = (replaced, object.json.len());
        let refusal = match self.cluster_bytes.check(&key.namespace, bytes) {
            Ok(()) if object.json.is_empty() => Some(
                "its labels and annotations have more than 64 KiB, or what Rayfit reads of it more than 512 KiB",
            ),
            Ok(()) => None,
            Err(reason) => Some(reason),
        };
        let is_kept = refusal.is_none();
        if let Some(reason) = refusal.filter(|_| mode.is_ours()) {
            tracing::warn!(cluster = %key, "not scaled: {reason}");
        }
        let entry = ClusterEntry {
            uid: object.meta.uid.as_deref().unwrap_or_default().into(),
            version: object.meta.resource_version.clone().unwrap_or_default(),
            mode: if is_kept { mode } else { ReconcileMode::Ray },
            scaled_by: annotation(handover::RECORD)
                .filter(|_| is_kept)
                .map(|record| record.as_str().into()),
            grows: annotation(ippr::ANNOTATION).is_some(),
            json: object
                .json
                .get(..)
                .filter(|_| is_kept)
                .unwrap_or_default()
                .into(),
        };
        // Our own writes are known from their replies before the watch reports them, and the watch
        // may still report older versions. A cluster that was read again and has not changed is not
        // new.
        let is_as_new = |stored: &ClusterEntry| {
            let versions = (stored.version.parse::<u64>(), entry.version.parse::<u64>());
            stored.uid == entry.uid && matches!(versions, (Ok(stored), Ok(new)) if stored >= new)
        };
        if self.clusters.get(&key).is_some_and(is_as_new) {
            return None;
        }
        if self.tombstones.hold(&entry.uid, &entry.version) {
            return None;
        }
        let bytes = (replaced, entry.json.len());
        self.cluster_bytes.replace(&key.namespace, bytes);
        self.clusters.insert(key.clone(), entry);
        Some(key)
    }

    /// Takes in that a RayCluster is gone as of a version: that of the list in which it is missing,
    /// or of its deletion.
    pub fn remove_cluster(&mut self, key: &Key, version: Option<&str>) -> Option<Key> {
        let version = version.and_then(|version| version.parse().ok());
        // The cluster was written after the list was made, as the reply to our own patch has shown.
        let is_newer = |entry: &ClusterEntry| {
            let stored = entry.version.parse::<u64>();
            matches!((stored, version), (Ok(stored), Some(version)) if stored > version)
        };
        if self.clusters.get(key).is_some_and(is_newer) {
            return None;
        }
        let entry = self.clusters.remove(key)?;
        let bytes = (entry.json.len(), 0);
        self.cluster_bytes.replace(&key.namespace, bytes);
        if let Some(version) = version {
            self.tombstones.put(entry.uid, version);
        }
        Some(key.clone())
    }

    /// Takes in a pod that was created or changed; returns the key of its cluster.
    pub fn put_pod(&mut self, object: KeptObject) -> Option<Key> {
        let key = key_of(&object.meta)?;
        let labelled = object.meta.labels.as_ref()?.get(CLUSTER_LABEL)?;
        let cluster = DnsName::parse(labelled).ok().map(|name| Key {
            namespace: key.namespace.clone(),
            name,
        });
        // It is indexed by its label and its node, both of which may have changed. No version is
        // compared, since only the watch tells of pods, in order; RayClusters come from our own
        // writes too.
        let previous = self.pods.get_mut(&key).and_then(|pod| pod.awaiting.take());
        self.remove_pod(&key);
        let mut pod: PodObject = serde_json::from_slice(&object.json).unwrap_or_default();
        let mut json = object.json;
        // The scheduler has found no room for it; what was said before of the same pod still holds.
        let awaiting = AwaitingPod::of(&Pod::of(&pod)).map(|pod| {
            let same = previous.filter(|previous| previous.pod.uid == pod.uid);
            same.unwrap_or_else(|| {
                let prospects = Vec::new();
                Box::new(Awaiting { pod, prospects })
            })
        });
        if let Some(awaiting) = &awaiting {
            self.unscheduled.insert(key.clone());
            if !awaiting.prospects.is_empty() {
                json = awaiting.written(&mut pod).into_boxed_slice();
            }
        }
        // Worked out once: each look at a cluster beside it on the node adds it up.
        let load = load_of(&pod);
        let node: Option<Arc<str>> = pod.spec.node_name.as_deref().map(Arc::from);
        if let Some(node) = &node {
            self.by_node
                .entry(Arc::clone(node))
                .or_default()
                .insert(key.clone());
        }
        if let Some(cluster) = &cluster {
            let pods = self.by_cluster.entry(cluster.clone()).or_default();
            pods.insert(key.name.clone());
        }
        let entry = PodEntry {
            cluster: cluster.clone(),
            controller: controller(&pod.metadata).map(Arc::from),
            load: load.map(|(_, load)| load).unwrap_or_default(),
            node,
            awaiting,
            json: json.into(),
        };
        self.pods.insert(key, entry);
        cluster
    }

    /// Takes in that a pod is gone; returns the key of its cluster.
    pub fn remove_pod(&mut self, key: &Key) -> Option<Key> {
        let entry = self.pods.remove(key)?;
        self.unscheduled.remove(key);
        if let Some(cluster) = &entry.cluster {
            drop_from(&mut self.by_cluster, cluster, &key.name);
        }
        if let Some(node) = &entry.node {
            drop_from(&mut self.by_node, node, key);
        }
        entry.cluster
    }

    /// Takes in a Kubernetes node that was created or changed; returns the keys of the clusters that
    /// have pods on it, if it is about to leave, or has been until now.
    pub fn put_node(&mut self, object: KeptObject) -> BTreeSet<Key> {
        let Some(name) = object.meta.name.as_deref().map(Arc::<str>::from) else {
            return BTreeSet::new();
        };
        // The kubelet reports every few minutes that nothing has changed.
        let is_same = |stored: &Arc<[u8]>| **stored == *object.json;
        if self.nodes.get(&name).is_some_and(is_same) {
            return BTreeSet::new();
        }
        let node: KubeNode = serde_json::from_slice(&object.json).unwrap_or_default();
        let was_closed = self.closed.remove(&name);
        if !node.is_open() {
            self.closed.insert(Arc::clone(&name));
        }
        self.nodes.insert(Arc::clone(&name), object.json.into());
        if node.is_open() && !was_closed {
            return BTreeSet::new();
        }
        let pods = self.by_node.get(&name).into_iter().flatten();
        let pods = pods.filter_map(|pod| self.pods.get(pod));
        pods.filter_map(|pod| pod.cluster.clone()).collect()
    }

    /// The JSON texts that a decision about a cluster needs; nothing of a cluster that is not scaled. This is cheap, so that it can be done
    /// under the store's lock.
    pub fn texts(&self, key: &Key) -> Option<ClusterTexts> {
        let cluster = self
            .clusters
            .get(key)
            .filter(|cluster| !cluster.json.is_empty())?;
        let names = self.by_cluster.get(key).into_iter().flatten();
        let labelled = names.filter_map(|name| {
            self.pods.get(&Key {
                namespace: key.namespace.clone(),
                name: name.clone(),
            })
        });
        let own: Vec<&PodEntry> = labelled.filter(|pod| pod.is_of(key, cluster)).collect();
        let mut nodes = None;
        let mut loads = NodeLoads::new();
        // `None` skips the check for node headroom; an empty list would leave no resize any
        // headroom.
        let hosts =
            || -> BTreeSet<&Arc<str>> { own.iter().filter_map(|pod| pod.node.as_ref()).collect() };
        if cluster.grows && self.listed.contains(&(StoredKind::Nodes, None)) {
            let hosts = hosts();
            let stored = hosts.iter().filter_map(|host| self.nodes.get(*host));
            nodes = Some(stored.cloned().collect());
            for host in hosts {
                let pods = self.by_node.get(host).into_iter().flatten();
                let pods = pods.filter_map(|pod| self.pods.get(pod));
                for pod in pods.filter(|pod| !pod.is_of(key, cluster)) {
                    add_load(&mut loads, host, pod.load);
                }
            }
        } else if !self.closed.is_empty() {
            let hosts = hosts().into_iter();
            let leaving = hosts.filter(|host| self.closed.contains(*host));
            let leaving: Vec<Arc<[u8]>> = leaving
                .filter_map(|host| self.nodes.get(host).cloned())
                .collect();
            nodes = Some(leaving).filter(|leaving| !leaving.is_empty());
        }
        Some(ClusterTexts {
            cluster: cluster.json.clone(),
            pods: own.iter().map(|pod| pod.json.clone()).collect(),
            nodes,
            loads,
        })
    }
}

fn drop_from<K, V>(index: &mut HashMap<K, BTreeSet<V>>, key: &K, value: &V)
where
    K: std::hash::Hash + Eq,
    V: Ord,
{
    if let Some(set) = index.get_mut(key) {
        set.remove(value);
        // Clusters and nodes come and go under new names: their empty sets would pile up.
        if set.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use rayfit_core::snapshot::Snapshot;
    use serde_json::{Value, json};

    use super::*;

    fn cluster(version: &str, mode: &str) -> KeptObject {
        KeptObject::of(
            StoredKind::RayClusters,
            &json!({ "metadata": {
            "namespace": "ray", "name": "demo", "uid": "u", "resourceVersion": version,
            "annotations": { "rayfit.dev/reconcile": mode, "ray.io/ippr": "{}" }
        }, "spec": {} }),
        )
    }

    fn pod(cluster: &str, name: &str, node: &str) -> KeptObject {
        // Clusters called "demo" have the UID "u".
        let uid = if cluster == "demo" { "u" } else { "v" };
        KeptObject::of(StoredKind::Pods, &pod_of("ray", cluster, uid, name, node))
    }

    fn pod_of(namespace: &str, cluster: &str, uid: &str, name: &str, node: &str) -> Value {
        json!({
            "metadata": {
                "namespace": namespace, "name": name, "labels": { "ray.io/cluster": cluster },
                "ownerReferences": [{ "kind": "RayCluster", "name": cluster, "uid": uid, "controller": true }]
            },
            "spec": { "nodeName": node, "containers": [
                { "name": "ray", "resources": { "requests": { "cpu": "2", "memory": "1Gi" } } }
            ] }
        })
    }

    fn own(scene: &Snapshot) -> Vec<&str> {
        scene.pods.iter().map(|pod| pod.name).collect()
    }

    fn hosts(scene: &Snapshot) -> Vec<&str> {
        let nodes = scene.nodes.iter().flatten();
        nodes.map(|node| node.metadata.name.as_str()).collect()
    }

    fn store() -> (Store, Key) {
        let mut store = Store::default();
        let key = store.put_cluster(&cluster("10", "central")).unwrap();
        for (cluster, name, node) in [
            ("demo", "a", "n1"),
            ("demo", "b", "n2"),
            ("other", "c", "n1"),
            ("other", "d", "n3"),
        ] {
            store.put_pod(pod(cluster, name, node));
        }
        for name in ["n1", "n2", "n3"] {
            store.put_node(KeptObject::of(
                StoredKind::Nodes,
                &json!({ "metadata": { "name": name } }),
            ));
        }
        (store, key)
    }

    #[test]
    fn a_scene_has_the_clusters_pods_their_nodes_and_who_else_is_there() {
        let (mut store, key) = store();
        store.listed(StoredKind::Nodes, None);
        let scene = store.texts(&key).unwrap().read();
        assert_eq!(own(&scene), ["a", "b"]);
        assert_eq!(hosts(&scene), ["n1", "n2"]);
        let beside = scene
            .loads
            .iter()
            .map(|(node, load)| (node.as_str(), load.cpu));
        assert_eq!(
            beside.collect::<Vec<_>>(),
            [("n1", rayfit_core::quantity::Quantity::parse("2").ok())]
        );
    }

    /// Two teams call their cluster `demo`, and somebody labels a pod as if it belonged to ours.
    #[test]
    fn pods_of_a_namesake_or_of_nobody_are_load_and_nothing_else() {
        let (mut store, key) = store();
        store.listed(StoredKind::Nodes, None);
        let mut labelled = pod_of("ray", "demo", "u", "labelled", "n1");
        labelled["metadata"]["ownerReferences"] = json!([]);
        for pod in [
            pod_of("other", "demo", "w", "postgres-0", "n1"),
            pod_of("ray", "demo", "before", "d-before", "n2"),
            labelled,
        ] {
            store.put_pod(KeptObject::of(StoredKind::Pods, &pod));
        }
        let scene = store.texts(&key).unwrap().read();
        assert_eq!(own(&scene), ["a", "b"]);
        let load = |node: &str| scene.loads[node].cpu.unwrap().to_string();
        assert_eq!((load("n1").as_str(), load("n2").as_str()), ("6", "2"));
    }

    #[test]
    fn a_node_that_leaves_concerns_the_clusters_with_pods_on_it() {
        let mut store = Store::default();
        let plain = json!({ "metadata": {
            "namespace": "ray", "name": "demo", "uid": "u", "resourceVersion": "1",
            "annotations": { "rayfit.dev/reconcile": "central" } }, "spec": {} });
        store.put_cluster(&KeptObject::of(StoredKind::RayClusters, &plain));
        store.put_pod(pod("demo", "a", "n1"));
        store.put_pod(pod("other", "b", "n2"));
        store.listed(StoredKind::Nodes, None);
        let key = Key::new("ray", "demo").unwrap();
        let mut put = |name: &str, cordoned: bool| {
            let node =
                json!({ "metadata": { "name": name }, "spec": { "unschedulable": cordoned } });
            let told = store.put_node(KeptObject::of(StoredKind::Nodes, &node));
            let told: Vec<Key> = told.into_iter().collect();
            (told, own_nodes(&store.texts(&key).unwrap()))
        };
        assert_eq!(put("n1", false), (vec![], vec![]));
        assert_eq!(put("n1", true), (vec![key.clone()], vec!["n1".to_owned()]));
        assert_eq!(put("n1", true).0, [], "nothing has changed");
        assert_eq!(put("n2", true).1, ["n1"], "none of its pods is there");
        assert_eq!(put("n1", false), (vec![key.clone()], vec![]));
    }

    fn own_nodes(texts: &ClusterTexts) -> Vec<String> {
        let nodes = texts.read().nodes.into_iter().flatten();
        nodes.map(|node| node.metadata.name).collect()
    }

    #[test]
    fn without_nodes_being_seen_nothing_is_said_of_them() {
        let (store, key) = store();
        let scene = store.texts(&key).unwrap().read();
        assert_eq!(own(&scene), ["a", "b"]);
        assert!(scene.nodes.is_none() && scene.loads.is_empty());
    }

    #[test]
    fn a_pod_that_moves_or_goes_leaves_no_trace() {
        let (mut store, key) = store();
        store.listed(StoredKind::Nodes, None);
        store.put_pod(pod("other", "c", "n3"));
        assert_eq!(
            store.remove_pod(&Key::new("ray", "b").unwrap()),
            Some(key.clone())
        );
        let scene = store.texts(&key).unwrap().read();
        assert_eq!(own(&scene), ["a"]);
        assert_eq!(hosts(&scene), ["n1"]);
        assert!(!store.by_node.contains_key("n2"));
    }

    #[test]
    fn what_is_older_than_what_is_known_is_ignored() {
        let (mut store, key) = store();
        store.put_cluster(&cluster("12", "sidecar"));
        assert_eq!(store.put_cluster(&cluster("11", "central")), None);
        assert_eq!(
            store.clusters.get(&key).unwrap().mode,
            ReconcileMode::Sidecar
        );
    }

    #[test]
    fn an_answer_that_comes_late_does_not_bring_a_deleted_cluster_back() {
        let (mut store, key) = store();
        store.put_cluster(&cluster("12", "central"));
        assert_eq!(store.remove_cluster(&key, Some("11")), None, "an old list");
        assert_eq!(store.remove_cluster(&key, Some("13")), Some(key.clone()));
        assert_eq!(store.put_cluster(&cluster("12", "central")), None);
        assert_eq!(store.put_cluster(&cluster("13", "central")), None);
        assert!(!store.clusters.contains_key(&key));
        let mut another = cluster("9", "central");
        another.meta.uid = Some("v".to_owned());
        assert_eq!(store.put_cluster(&another), Some(key), "a namesake");
    }

    #[test]
    fn texts_are_the_same_until_something_of_them_is_written_again() {
        let (mut store, key) = store();
        store.listed(StoredKind::Nodes, None);
        let texts = store.texts(&key).unwrap();
        // The cluster is read again, and there are pods that are neither ours nor on our nodes.
        assert_eq!(store.put_cluster(&cluster("10", "central")), None);
        store.put_pod(pod("other", "d", "n3"));
        assert!(texts.are(&store.texts(&key).unwrap()));
        for change in [
            |store: &mut Store| drop(store.put_cluster(&cluster("11", "central"))),
            |store: &mut Store| drop(store.put_pod(pod("demo", "a", "n1"))),
            |store: &mut Store| drop(store.remove_pod(&Key::new("ray", "c").unwrap())),
            |store: &mut Store| drop(store.remove_pod(&Key::new("ray", "b").unwrap())),
            |store: &mut Store| {
                store.put_node(KeptObject::of(
                    StoredKind::Nodes,
                    &json!({ "metadata": { "name": "n1" },
                    "status": { "allocatable": { "cpu": "1" } } }),
                ));
            },
        ] {
            let before = store.texts(&key).unwrap();
            change(&mut store);
            assert!(!before.are(&store.texts(&key).unwrap()));
        }
    }

    #[test]
    fn pods_are_known_once_their_namespace_was_listed() {
        let mut store = Store::default();
        assert!(!store.knows_pods("ray"));
        store.listed(StoredKind::Pods, Some("other"));
        assert!(!store.knows_pods("ray"));
        store.listed(StoredKind::Pods, Some("ray"));
        assert!(store.knows_pods("ray"));
    }
}
