//! The pods that wait for a Kubernetes node, and taking in what is said about them.

use std::collections::{BTreeSet, HashMap};

use rayfit_core::dns_name::Key;
use rayfit_core::ray::ReconcileMode;
use rayfit_core::snapshot::node_prospect::NodeProspect;
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::prospect_reader::AwaitingPod;

use super::awaiting::{Awaiting, AwaitingPods};
use super::store::Store;

impl Store {
    /// The pods of RayClusters in mode central that wait for a Kubernetes node.
    pub(super) fn awaiting(&self) -> AwaitingPods {
        let mut pods_of = AwaitingPods::new();
        for key in &self.unscheduled {
            let Some(entry) = self.pods.get(key) else {
                continue;
            };
            let is_ours = entry.cluster.as_ref().is_some_and(|key| {
                let cluster = self.clusters.get(key);
                cluster.is_some_and(|cluster| {
                    entry.is_of(key, cluster) && cluster.mode == ReconcileMode::Central
                })
            });
            if let Some(awaiting) = entry.awaiting.as_ref().filter(|_| is_ours) {
                let pods = pods_of.entry(key.namespace.to_string()).or_default();
                pods.insert(key.name.to_string(), awaiting.pod.clone());
            }
        }
        pods_of
    }

    /// Takes in what is said of the pods of a namespace. Nothing is said any more of pods that are
    /// not in it. Returns the keys of the clusters for which that changes anything.
    pub(super) fn put_prospects(
        &mut self,
        namespace: &str,
        pods: &HashMap<String, AwaitingPod>,
        mut by_pod: HashMap<String, Vec<NodeProspect>>,
    ) -> BTreeSet<Key> {
        let mut changed = BTreeSet::new();
        for (name, pod) in pods {
            let prospects = by_pod.remove(name).unwrap_or_default();
            let key = Key::new(namespace, name).ok();
            let Some(entry) = key.and_then(|key| self.pods.get_mut(&key)) else {
                continue;
            };
            let same = |awaiting: &&mut Box<Awaiting>| {
                awaiting.pod.uid == pod.uid && awaiting.prospects != prospects
            };
            let Some(awaiting) = entry.awaiting.as_mut().filter(same) else {
                continue;
            };
            awaiting.prospects.clone_from(&prospects);
            let mut object: PodObject = serde_json::from_slice(&entry.json).unwrap_or_default();
            entry.json = awaiting.written(&mut object).into();
            changed.extend(entry.cluster.clone());
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use rayfit_core::snapshot::node_prospect::{NodeAutoscaler, NodeOutlook};
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::observe::kept::{KeptObject, StoredKind};

    fn cluster(name: &str, mode: &str) -> Value {
        json!({ "metadata": { "namespace": "ray", "name": name, "uid": name, "resourceVersion": "1",
            "annotations": { "rayfit.dev/reconcile": mode } }, "spec": {} })
    }

    fn pod(name: &str, cluster: &str, node: Option<&str>) -> Value {
        json!({
            "metadata": { "namespace": "ray", "name": name, "uid": name, "labels": { "ray.io/cluster": cluster },
                "creationTimestamp": "2026-01-14T12:00:00Z",
                "ownerReferences": [{ "kind": "RayCluster", "name": cluster, "uid": cluster, "controller": true }] },
            "spec": { "nodeName": node, "containers": [] },
            "status": { "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
        })
    }

    fn store() -> Store {
        let mut store = Store::default();
        for (name, mode) in [("demo", "central"), ("other", "sidecar")] {
            store.put_cluster(&KeptObject::of(
                StoredKind::RayClusters,
                &cluster(name, mode),
            ));
        }
        for (name, cluster, node) in [
            ("a", "demo", None),
            ("b", "demo", Some("n")),
            ("c", "other", None),
            ("e", "gone", None),
        ] {
            store.put_pod(KeptObject::of(StoredKind::Pods, &pod(name, cluster, node)));
        }
        store
    }

    fn waiting_pods(store: &Store) -> HashMap<String, AwaitingPod> {
        store.awaiting().remove("ray").unwrap_or_default()
    }

    fn prospects_of(name: &str) -> HashMap<String, Vec<NodeProspect>> {
        let prospect = NodeProspect {
            by: NodeAutoscaler::Karpenter,
            node: NodeOutlook::None,
            since: "2026-01-14T12:00:02Z".to_owned(),
            message: "no".to_owned(),
        };
        HashMap::from([(name.to_owned(), vec![prospect])])
    }

    fn known(store: &Store) -> Vec<(String, usize)> {
        let scene = store
            .texts(&Key::new("ray", "demo").unwrap())
            .unwrap()
            .read();
        let pods = scene.pods.iter();
        pods.map(|pod| (pod.name.to_owned(), pod.object.node_prospects.len()))
            .collect()
    }

    #[test]
    fn only_pods_without_a_node_of_clusters_that_are_scaled_here_are_asked_about() {
        let names: Vec<String> = waiting_pods(&store()).into_keys().collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn what_is_said_becomes_a_part_of_the_pod_until_it_has_a_node() {
        let mut store = store();
        let demo = BTreeSet::from([Key::new("ray", "demo").unwrap()]);
        let pods = waiting_pods(&store);
        let before = store.texts(&Key::new("ray", "demo").unwrap()).unwrap();
        assert_eq!(store.put_prospects("ray", &pods, prospects_of("a")), demo);
        assert!(
            !store
                .texts(&Key::new("ray", "demo").unwrap())
                .unwrap()
                .are(&before)
        );
        assert_eq!(
            store.put_prospects("ray", &pods, prospects_of("a")),
            BTreeSet::new(),
            "the same again"
        );
        let with = [("a".to_owned(), 1), ("b".to_owned(), 0)];
        assert_eq!(known(&store), with);
        store.put_pod(KeptObject::of(StoredKind::Pods, &pod("a", "demo", None)));
        assert_eq!(known(&store), with, "the pod was stored anew");
        store.put_pod(KeptObject::of(
            StoredKind::Pods,
            &pod("a", "demo", Some("n")),
        ));
        assert_eq!(known(&store)[0].1, 0);
        assert_eq!(waiting_pods(&store).len(), 0);
    }

    #[test]
    fn what_is_said_no_more_is_taken_back() {
        let mut store = store();
        let pods = waiting_pods(&store);
        store.put_prospects("ray", &pods, prospects_of("a"));
        assert_eq!(store.put_prospects("ray", &pods, HashMap::new()).len(), 1);
        assert_eq!(known(&store)[0].1, 0);
    }

    #[test]
    fn another_pod_of_the_name_is_not_meant() {
        let mut store = store();
        let pods = waiting_pods(&store);
        store.put_prospects("ray", &pods, prospects_of("a"));
        let mut another = pod("a", "demo", None);
        another["metadata"]["uid"] = json!("a2");
        store.put_pod(KeptObject::of(StoredKind::Pods, &another));
        assert_eq!(known(&store)[0].1, 0);
        assert_eq!(
            store.put_prospects("ray", &pods, prospects_of("a")),
            BTreeSet::new(),
            "of the one before"
        );
        store.remove_pod(&Key::new("ray", "a").unwrap());
        assert_eq!(
            store.put_prospects("ray", &pods, prospects_of("a")),
            BTreeSet::new(),
            "of one that is gone"
        );
        assert_eq!(waiting_pods(&store).len(), 0);
    }
}
