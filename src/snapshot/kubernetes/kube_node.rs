//! A Kubernetes node as it is kept, and the load that pods are on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::pod_object::PodObject;
use super::requests::requests;
use crate::snapshot::amounts::Amounts;
use crate::snapshot::canonical::nullable;
use crate::snapshot::moment::seconds;

/// The most taints that are kept of a node.
const TAINTS: usize = 16;

/// A Kubernetes node: its name, its allocatable amounts, and whether it is about to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNode {
    /// The identity of the node.
    #[serde(deserialize_with = "nullable")]
    pub metadata: NodeMetadata,
    /// What its operators want of the node.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "KubeNodeSpec::is_empty"
    )]
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
    /// When Kubernetes was asked to delete the node, in RFC 3339.
    #[serde(rename = "deletionTimestamp", skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
}

/// `spec` of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNodeSpec {
    /// Whether the node is cordoned: no new pods are scheduled to it.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub unschedulable: bool,
    /// The taints that say that the node is about to leave or in trouble; all others are dropped.
    #[serde(deserialize_with = "taints", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl KubeNodeSpec {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A taint of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// The key.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// The value.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
    /// When it was added, in RFC 3339, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// What a taint says about the future of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintMeaning {
    /// The node is about to leave, so many seconds after the taint was added where that is known.
    Leaves(Option<u32>),
    /// The kubelet does not answer. Kubernetes evicts the pods after five minutes.
    Unreachable,
    /// The node takes no more pods for a while.
    Short,
}

impl Taint {
    /// What the taint says about the future of its node, if that is known of its key.
    pub fn meaning(&self) -> Option<TaintMeaning> {
        let key = self.key.as_str();
        // Kubernetes, `core/v1/well_known_taints.go` and cloud-provider's `well_known_taints.go`;
        // Karpenter, `v1/taints.go`; cluster-autoscaler, `utils/taints/taints.go`;
        // aws-node-termination-handler, `pkg/node/node.go`; GKE's node taints.
        match key {
            "node.kubernetes.io/unschedulable"
            | "node.kubernetes.io/out-of-service"
            | "node.cloudprovider.kubernetes.io/shutdown"
            | "karpenter.sh/disrupted"
            | "karpenter.sh/disruption"
            | "ToBeDeletedByClusterAutoscaler" => Some(TaintMeaning::Leaves(None)),
            // Google gives 30 seconds.
            "cloud.google.com/impending-node-termination" => Some(TaintMeaning::Leaves(Some(30))),
            // Amazon gives two minutes.
            "aws-node-termination-handler/spot-itn" => Some(TaintMeaning::Leaves(Some(120))),
            _ if key.starts_with("aws-node-termination-handler/") => {
                Some(TaintMeaning::Leaves(None))
            }
            "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => {
                Some(TaintMeaning::Unreachable)
            }
            "node.kubernetes.io/memory-pressure"
            | "node.kubernetes.io/disk-pressure"
            | "node.kubernetes.io/pid-pressure"
            | "node.kubernetes.io/network-unavailable" => Some(TaintMeaning::Short),
            _ => None,
        }
    }

    /// When the taint was added, in seconds since 1970, if that is known.
    pub fn added(&self) -> Option<f64> {
        // Cluster-autoscaler writes the time into the value.
        let by_value = || {
            let seconds: u32 = self.value.parse().ok()?;
            (self.key == "ToBeDeletedByClusterAutoscaler").then(|| f64::from(seconds))
        };
        let time = self.time_added.as_deref().and_then(seconds);
        time.or_else(by_value)
    }
}

impl KubeNode {
    /// Whether pods on it may grow: it is neither about to leave nor in trouble.
    pub fn is_open(&self) -> bool {
        self.metadata.deletion_timestamp.is_none()
            && !self.spec.unschedulable
            && self.spec.taints.is_empty()
    }
}

/// The taints that mean something here.
fn taints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Taint>, D::Error> {
    let mut taints: Vec<Taint> = nullable(deserializer)?;
    // By that effect the scheduler only prefers other nodes, and nobody is evicted.
    taints.retain(|taint| taint.meaning().is_some() && taint.effect != "PreferNoSchedule");
    taints.truncate(TAINTS);
    Ok(taints)
}

/// `status` of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KubeNodeStatus {
    /// The amounts that pods can request of the node.
    pub allocatable: Amounts,
}

/// What the pods of others request of each node, by the name of the node.
pub type NodeLoads = BTreeMap<String, Amounts>;

/// What a pod takes of its node. It takes nothing before it is bound to a node and after it has
/// ended.
pub fn load_of(pod: &PodObject) -> Option<(&str, Amounts)> {
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
