//! Ownership: which RayCluster a pod belongs to, which is decided here and nowhere else.
//!
//! A label proves nothing, because anybody who may make a pod can write it, in any namespace. A pod
//! belongs to a RayCluster if it is in its namespace, has its label, and names it by UID as the
//! owner that controls it: KubeRay makes all its pods that way (`SetControllerReference`), and
//! Kubernetes gives no UID twice. The pods of others count as load on their node. From here on
//! nobody can mistake them for the RayCluster's own pods, because only this module makes
//! [`OwnPods`].

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::node_prospect::NodeProspect;
use super::pod::Pod;
use super::pod_object::{PodMetadata, PodObject};
use super::prospect_reader::AwaitingPod;

/// The identity of a RayCluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClusterId {
    /// The namespace; `None` only in snapshots that were written by hand.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The UID; `None` only in snapshots that were written by hand.
    pub uid: Option<String>,
}

impl ClusterId {
    /// The identity of a RayCluster, as far as the object has one.
    pub fn of(cluster: &Value) -> Self {
        let text = |key: &str| {
            let text = cluster.pointer(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").unwrap_or_default(),
            uid: text("/metadata/uid"),
        }
    }

    /// True for a pod of the RayCluster. Objects of the API server have a namespace and a
    /// UID.
    pub fn owns(&self, pod: &PodMetadata) -> bool {
        let same_namespace = match (&self.namespace, &pod.namespace) {
            (Some(ours), Some(theirs)) => ours == theirs,
            // A live pod always has its namespace.
            (Some(_), None) => self.uid.is_none(),
            // A snapshot that was written by hand may leave the namespace out.
            (None, _) => true,
        };
        let same_owner = match &self.uid {
            Some(uid) => controller(pod) == Some(uid),
            None => true,
        };
        let same_label = match &pod.labels.cluster {
            Some(label) => *label == self.name,
            None => self.uid.is_none(),
        };
        same_namespace && same_owner && same_label
    }
}

/// The UID of the RayCluster that controls a pod.
pub fn controller(pod: &PodMetadata) -> Option<&str> {
    let mut owners = pod.owner_references.iter();
    // Kubernetes accepts one controlling owner at the most.
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    (owner.kind == "RayCluster" && !owner.uid.is_empty()).then_some(owner.uid.as_str())
}

/// The pods of one RayCluster. No other pod can be among them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OwnPods {
    #[serde(skip)]
    cluster: ClusterId,
    pods: Vec<PodObject>,
}

impl OwnPods {
    /// Divides pods into the pods of a RayCluster and the pods of others.
    pub fn divide(
        cluster: ClusterId,
        pods: impl IntoIterator<Item = PodObject>,
    ) -> (Self, Vec<PodObject>) {
        let (pods, others) = (pods.into_iter()).partition(|pod: &PodObject| {
            // Plans name pods, and only in files are there any without a name.
            !pod.metadata.name.is_empty() && cluster.owns(&pod.metadata)
        });
        (Self { cluster, pods }, others)
    }

    /// The RayCluster that they belong to.
    pub fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// The number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// True without any pod.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The pods, as decisions see them.
    pub fn iter(&self) -> impl Iterator<Item = Pod<'_>> + Clone {
        self.pods.iter().map(Pod::of)
    }

    /// The pod with that name.
    pub fn find(&self, name: &str) -> Option<Pod<'_>> {
        self.iter().find(|pod| pod.name == name)
    }

    /// Keeps only the pods for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Pod<'_>) -> bool) {
        self.pods.retain(|pod| keep(&Pod::of(pod)));
    }

    /// The pods that the scheduler has found no room for, by name.
    pub fn awaiting(&self) -> HashMap<String, AwaitingPod> {
        let awaiting = self.iter().filter_map(|pod| {
            let awaiting = AwaitingPod::of(&pod)?;
            Some((pod.name.to_owned(), awaiting))
        });
        awaiting.collect()
    }

    /// Sets what node autoscalers say about these pods, by name.
    pub fn set_prospects(&mut self, mut by_name: HashMap<String, Vec<NodeProspect>>) {
        for pod in &mut self.pods {
            if let Some(prospects) = by_name.remove(&pod.metadata.name) {
                pod.node_prospects = prospects;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster() -> ClusterId {
        ClusterId::of(&json!({"metadata": {"namespace": "a", "name": "ray", "uid": "u1"}}))
    }

    fn pod(namespace: &str, label: &str, owner: &Value) -> PodObject {
        serde_json::from_value(json!({"metadata": {
            "name": "p", "namespace": namespace, "labels": {"ray.io/cluster": label},
            "ownerReferences": owner,
        }}))
        .unwrap()
    }

    fn owner(uid: &str) -> Value {
        json!([{"kind": "RayCluster", "name": "ray", "uid": uid, "controller": true}])
    }

    #[test]
    fn namespace_label_and_owner_must_all_be_right() {
        let owns = |pod: &PodObject| cluster().owns(&pod.metadata);
        assert!(owns(&pod("a", "ray", &owner("u1"))));
        assert!(!owns(&pod("b", "ray", &owner("u1"))), "another namespace");
        assert!(!owns(&pod("a", "other", &owner("u1"))), "another label");
        assert!(!owns(&pod("a", "ray", &json!([]))), "a label alone");
        assert!(
            !owns(&pod("a", "ray", &owner("u0"))),
            "a cluster of that name before"
        );
        let mut not_controlling = owner("u1");
        not_controlling[0]["controller"] = json!(false);
        assert!(!owns(&pod("a", "ray", &not_controlling)));
        let mut other_kind = owner("u1");
        other_kind[0]["kind"] = json!("Job");
        assert!(!owns(&pod("a", "ray", &other_kind)));
    }

    #[test]
    fn what_a_snapshot_by_hand_leaves_out_is_not_compared() {
        let by_hand = ClusterId::of(&json!({"metadata": {"name": "ray", "namespace": "a"}}));
        let mut without = pod("a", "ray", &json!([]));
        assert!(by_hand.owns(&without.metadata));
        without.metadata.namespace = None;
        without.metadata.labels.cluster = None;
        assert!(by_hand.owns(&without.metadata));
        assert!(!cluster().owns(&without.metadata));
        assert!(!by_hand.owns(&pod("b", "ray", &json!([])).metadata));
    }

    #[test]
    fn pods_are_divided() {
        let pods = [pod("a", "ray", &owner("u1")), pod("b", "ray", &owner("u2"))];
        let (own, others) = OwnPods::divide(cluster(), pods);
        assert_eq!((own.len(), others.len()), (1, 1));
        assert_eq!(others[0].metadata.namespace.as_deref(), Some("b"));
    }
}
