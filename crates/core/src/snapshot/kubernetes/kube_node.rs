//! A Kubernetes node as it is kept, and the load that pods are on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pod_object::PodObject;
use super::requests::requests;
use super::taint::{self, Taint};
use crate::ray::resource::Amounts;
use crate::snapshot::canonical::{is_default, nullable};
use crate::snapshot::moment::seconds;

/// A Kubernetes node: its name, its allocatable amounts, and whether it is about to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNode {
    /// The identity of the node.
    #[serde(deserialize_with = "nullable")]
    pub metadata: NodeMetadata,
    /// The spec of the node.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub spec: KubeNodeSpec,
    /// The status of the node.
    #[serde(deserialize_with = "nullable")]
    pub status: KubeNodeStatus,
}

/// `metadata` of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeMetadata {
    /// The name of the node.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The time at which Kubernetes was asked to delete the node, in RFC 3339.
    #[serde(rename = "deletionTimestamp", skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<String>,
}

/// `spec` of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNodeSpec {
    /// True for a cordoned node: no new pods are scheduled to it.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub unschedulable: bool,
    /// The taints that say that the node is about to leave or in trouble; all others are dropped.
    #[serde(deserialize_with = "taint::read", skip_serializing_if = "is_default")]
    pub taints: Vec<Taint>,
}

impl KubeNode {
    /// The time at which Kubernetes was asked to delete the node, in seconds since 1970, if it was.
    pub fn deleted_at(&self) -> Option<f64> {
        seconds(self.metadata.deletion_timestamp.as_deref()?)
    }

    /// True if pods on it may grow: it is neither about to leave nor in trouble.
    pub fn is_open(&self) -> bool {
        self.metadata.deletion_timestamp.is_none()
            && !self.spec.unschedulable
            // Only taints that say that the node leaves, or is in trouble, are kept of it.
            && self.spec.taints.is_empty()
    }
}

/// `status` of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNodeStatus {
    /// The amounts that pods can request of the node.
    pub allocatable: Amounts,
}

/// The requests of other pods on each node, by the name of the node.
pub type NodeLoads = BTreeMap<String, Amounts>;

/// The amounts that a pod takes of its node. It takes nothing before it is bound to a node and
/// after it has ended.
pub fn load_of(pod: &PodObject) -> Option<(&str, Amounts)> {
    // The kubelet frees the room of an ended pod, though the object may stay for hours.
    let ended = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let node = pod.spec.node_name.as_deref()?;
    (!ended).then(|| (node, requests(pod)))
}

/// Adds what all of these pods take of their nodes to `loads`.
pub fn add_loads<'a>(loads: &mut NodeLoads, pods: impl IntoIterator<Item = &'a PodObject>) {
    for (node, load) in pods.into_iter().filter_map(load_of) {
        add_load(loads, node, load);
    }
}

/// Adds what a pod takes of its node to `loads`.
pub fn add_load(loads: &mut NodeLoads, node: &str, load: Amounts) {
    let sum = loads.get(node).copied().unwrap_or_default().plus(load);
    loads.insert(node.to_owned(), sum);
}
