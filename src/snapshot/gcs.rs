//! What Ray reports: `ray.rpc.autoscaler.ClusterResourceState`, as far as decisions need it.
//!
//! Fields are read by their canonical JSON name and by the original one of Ray's
//! `autoscaler.proto` (`pendingResourceRequests`, `pending_resource_requests`). Fields that no
//! decision needs are skipped.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use super::canonical::{Integer, amounts, base64, enumerated, hex, integer, nullable};

/// The state of the Ray cluster as its GCS knows it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterResourceState {
    /// The Ray nodes, dead ones included.
    #[serde(alias = "node_states", deserialize_with = "nullable")]
    pub node_states: Vec<NodeState>,
    /// Pending tasks and actors: one entry per shape.
    #[serde(alias = "pending_resource_requests", deserialize_with = "nullable")]
    pub pending_resource_requests: Vec<ResourceRequestByCount>,
    /// Pending placement groups.
    #[serde(
        alias = "pending_gang_resource_requests",
        deserialize_with = "nullable"
    )]
    pub pending_gang_resource_requests: Vec<GangResourceRequest>,
    /// What `request_resources()` asked for: at most one in practice.
    #[serde(alias = "cluster_resource_constraints", deserialize_with = "nullable")]
    pub cluster_resource_constraints: Vec<ClusterResourceConstraint>,
}

/// A Ray node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeState {
    /// The node id, in hexadecimal here, base64 in JSON.
    #[serde(alias = "node_id", deserialize_with = "hex", serialize_with = "base64")]
    pub node_id: String,
    /// The pod's name; empty for a node that no pod of KubeRay started.
    #[serde(alias = "instance_id", deserialize_with = "nullable")]
    pub instance_id: String,
    /// The group's name.
    #[serde(alias = "ray_node_type_name", deserialize_with = "nullable")]
    pub ray_node_type_name: String,
    /// What is free; a resource that is used up is missing.
    #[serde(alias = "available_resources", deserialize_with = "amounts")]
    pub available_resources: BTreeMap<String, f64>,
    /// What there is.
    #[serde(alias = "total_resources", deserialize_with = "amounts")]
    pub total_resources: BTreeMap<String, f64>,
    /// Labels that come and go, such as those of placement groups.
    #[serde(alias = "dynamic_labels", deserialize_with = "nullable")]
    pub dynamic_labels: BTreeMap<String, String>,
    /// How it is.
    #[serde(deserialize_with = "nullable")]
    pub status: NodeStatus,
    /// For how long it has been idle, in milliseconds.
    #[serde(alias = "idle_duration_ms", deserialize_with = "integer")]
    #[schemars(with = "Integer")]
    pub idle_duration_ms: i64,
    /// Labels that stay.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
}

/// How a Ray node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeStatus {
    /// Not said.
    #[default]
    Unspecified,
    /// It has work.
    Running,
    /// It is gone.
    Dead,
    /// It has no work.
    Idle,
    /// It takes no new work and is about to go.
    Draining,
}

impl<'de> Deserialize<'de> for NodeStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = ["UNSPECIFIED", "RUNNING", "DEAD", "IDLE", "DRAINING"];
        Ok(match enumerated(deserializer, &names)? {
            1 => Self::Running,
            2 => Self::Dead,
            3 => Self::Idle,
            4 => Self::Draining,
            _ => Self::Unspecified,
        })
    }
}

/// A request and how often it is wanted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ResourceRequestByCount {
    /// The request.
    #[serde(deserialize_with = "nullable")]
    pub request: ResourceRequest,
    /// How often.
    #[serde(deserialize_with = "integer")]
    #[schemars(with = "Integer")]
    pub count: i64,
}

/// What one task, actor or bundle needs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequest {
    /// Amounts by resource.
    #[serde(alias = "resources_bundle", deserialize_with = "amounts")]
    pub resources_bundle: BTreeMap<String, f64>,
    /// Together with, or apart from others.
    #[serde(alias = "placement_constraints", deserialize_with = "nullable")]
    pub placement_constraints: Vec<PlacementConstraint>,
    /// Where: the first selector that a node satisfies counts.
    #[serde(alias = "label_selectors", deserialize_with = "nullable")]
    pub label_selectors: Vec<LabelSelector>,
}

/// Together with, or apart from, whatever has the label.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementConstraint {
    /// Apart.
    #[serde(alias = "anti_affinity", skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<Label>,
    /// Together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Label>,
}

/// A label of a placement group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Label {
    /// Its name.
    #[serde(alias = "label_name", deserialize_with = "nullable")]
    pub label_name: String,
    /// Its value.
    #[serde(alias = "label_value", deserialize_with = "nullable")]
    pub label_value: String,
}

/// Constraints that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// They.
    #[serde(alias = "label_constraints", deserialize_with = "nullable")]
    pub label_constraints: Vec<LabelConstraint>,
}

/// One label and its allowed or forbidden values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelConstraint {
    /// The label.
    #[serde(alias = "label_key", deserialize_with = "nullable")]
    pub label_key: String,
    /// In or not in.
    #[serde(deserialize_with = "nullable")]
    pub operator: LabelOperator,
    /// The values.
    #[serde(alias = "label_values", deserialize_with = "nullable")]
    pub label_values: Vec<String>,
}

/// How values are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub enum LabelOperator {
    /// Not said: never satisfied.
    #[default]
    #[serde(rename = "LABEL_OPERATOR_UNSPECIFIED")]
    Unspecified,
    /// The label is there and has one of the values.
    #[serde(rename = "LABEL_OPERATOR_IN")]
    In,
    /// The label is missing or has none of the values.
    #[serde(rename = "LABEL_OPERATOR_NOT_IN")]
    NotIn,
}

impl<'de> Deserialize<'de> for LabelOperator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = [
            "LABEL_OPERATOR_UNSPECIFIED",
            "LABEL_OPERATOR_IN",
            "LABEL_OPERATOR_NOT_IN",
        ];
        Ok(match enumerated(deserializer, &names)? {
            1 => Self::In,
            2 => Self::NotIn,
            _ => Self::Unspecified,
        })
    }
}

/// A placement group: all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GangResourceRequest {
    /// The bundles, as older Ray reports them.
    #[serde(deserialize_with = "nullable")]
    pub requests: Vec<ResourceRequest>,
    /// `<placement group id>:<STRATEGY>|<STATE>`
    #[serde(deserialize_with = "nullable")]
    pub details: String,
    /// The bundles with their label selectors; only the first entry counts.
    #[serde(alias = "bundle_selectors", deserialize_with = "nullable")]
    pub bundle_selectors: Vec<BundleSelector>,
}

/// One way to place a placement group.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BundleSelector {
    /// The bundles.
    #[serde(alias = "resource_requests", deserialize_with = "nullable")]
    pub resource_requests: Vec<ResourceRequest>,
}

/// What `request_resources()` asked for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterResourceConstraint {
    /// The requests.
    #[serde(alias = "resource_requests", deserialize_with = "nullable")]
    pub resource_requests: Vec<ResourceRequestByCount>,
}

impl ClusterResourceState {
    /// The live Ray node of each pod. For a while after its container began anew, or for good where
    /// somebody starts a second raylet, a pod has several. It is one node all the same, since pods
    /// are what groups count. Which one counts does not hang on the order in which Ray reports them:
    /// one that stays before one that drains, then the one with the latest work.
    pub fn live(&self) -> HashMap<&str, &NodeState> {
        let rank = |node: &NodeState| (node.status == NodeStatus::Draining, node.idle_duration_ms);
        let mut live: HashMap<&str, &NodeState> = HashMap::new();
        for node in self.node_states.iter().filter(|node| node.is_alive()) {
            let counts = live.entry(&node.instance_id).or_insert(node);
            if (rank(node), &node.node_id) < (rank(counts), &counts.node_id) {
                *counts = node;
            }
        }
        live
    }
}

impl NodeState {
    /// It is there, whether or not it takes new work.
    pub fn is_alive(&self) -> bool {
        !matches!(self.status, NodeStatus::Dead | NodeStatus::Unspecified)
    }

    /// It runs, with work or without.
    pub fn is_running(&self) -> bool {
        matches!(self.status, NodeStatus::Running | NodeStatus::Idle)
    }

    /// It is the head: only the head has this resource.
    pub fn is_head(&self) -> bool {
        self.total_resources.contains_key("node:__internal_head__")
    }
}

impl GangResourceRequest {
    /// The placement group's id and strategy, as far as they are said.
    pub fn title(&self) -> &str {
        self.details.split('|').next().unwrap_or_default()
    }
}
