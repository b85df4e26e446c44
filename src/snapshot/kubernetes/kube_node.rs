//! A Kubernetes node as it is kept, and what others take of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pod_object::PodObject;
use super::requests::requests;
use crate::snapshot::amounts::Amounts;
use crate::snapshot::canonical::nullable;

/// A Kubernetes node: its name and what it has to give.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNode {
    /// Who it is.
    #[serde(deserialize_with = "nullable")]
    pub metadata: NodeMetadata,
    /// What it has to give.
    #[serde(deserialize_with = "nullable")]
    pub status: NodeStatus,
}

/// `metadata`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeMetadata {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
}

/// `status`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeStatus {
    /// What pods can have of it.
    pub allocatable: Amounts,
}

/// What the pods of others request of each node, by the node's name.
pub type NodeLoads = BTreeMap<String, Amounts>;

/// What a pod takes of its node: nothing before it is bound and after it has ended.
pub fn load_of(pod: &PodObject) -> Option<(&str, Amounts)> {
    let ended = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let node = pod.spec.node_name.as_deref()?;
    (!ended).then(|| (node, requests(pod)))
}

/// Adds what all of these pods take of their nodes.
pub fn add_loads<'a>(loads: &mut NodeLoads, pods: impl IntoIterator<Item = &'a PodObject>) {
    for (node, load) in pods.into_iter().filter_map(load_of) {
        add_load(loads, node, load);
    }
}

/// Adds what a pod takes of its node.
pub fn add_load(loads: &mut NodeLoads, node: &str, load: Amounts) {
    let sum = loads.get(node).copied().unwrap_or_default().plus(load);
    loads.insert(node.to_owned(), sum);
}
