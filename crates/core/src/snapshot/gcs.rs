//! Ray's report: the part of `ray.rpc.autoscaler.ClusterResourceState` that decisions need.
//!
//! Fields are read by their name in canonical JSON and by their original name in Ray's
//! `autoscaler.proto` (`pendingResourceRequests`, `pending_resource_requests`). Fields that no
//! decision needs are skipped. Requests and their parts are Ray's messages themselves, with the
//! field numbers of `proto/`, because a report to Ray repeats them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::canonical::{
    amounts, base64, enumerated, hex, integer, integer_schema, is_default, nullable,
};
use crate::hash::HashMap;

/// The state of the Ray cluster as its GCS knows it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterResourceState {
    /// The Ray nodes, dead ones included.
    #[serde(alias = "node_states", deserialize_with = "nullable")]
    pub node_states: Vec<NodeState>,
    /// The pending tasks and actors, with one entry for each shape.
    #[serde(alias = "pending_resource_requests", deserialize_with = "nullable")]
    pub pending_resource_requests: Vec<ResourceRequestByCount>,
    /// The pending placement groups.
    #[serde(
        alias = "pending_gang_resource_requests",
        deserialize_with = "nullable"
    )]
    pub pending_gang_resource_requests: Vec<GangResourceRequest>,
    /// The demand of `request_resources()`, which is one entry at the most in practice.
    #[serde(alias = "cluster_resource_constraints", deserialize_with = "nullable")]
    pub cluster_resource_constraints: Vec<ClusterResourceConstraint>,
    /// The users of the cluster, if asked for: another call to the GCS says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<RayUsers>,
}

/// The users of a Ray cluster. Drivers and actors that Ray runs for itself are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RayUsers {
    /// The number of live drivers.
    pub drivers: u64,
    /// The number of live detached actors.
    pub detached_actors: u64,
    /// The time at which a driver ended last, in milliseconds since 1970; 0 if none has.
    pub last_job_end_ms: u64,
}

/// The resource that marks the head. (Ray, `ray_constants.py`, `HEAD_NODE_RESOURCE_NAME`.)
pub const HEAD_RESOURCE: &str = "node:__internal_head__";

/// A Ray node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeState {
    /// The id of the Ray node, in hexadecimal here and in base64 in JSON.
    #[serde(alias = "node_id", deserialize_with = "hex", serialize_with = "base64")]
    pub node_id: String,
    /// The name of the pod; empty for a Ray node that no pod of KubeRay started.
    #[serde(alias = "instance_id", deserialize_with = "nullable")]
    pub instance_id: String,
    /// The name of the group.
    #[serde(alias = "ray_node_type_name", deserialize_with = "nullable")]
    pub ray_node_type_name: String,
    /// The free amounts by resource. A resource that is used up is missing.
    #[serde(alias = "available_resources", deserialize_with = "amounts")]
    pub available_resources: BTreeMap<String, f64>,
    /// The total amounts by resource.
    #[serde(alias = "total_resources", deserialize_with = "amounts")]
    pub total_resources: BTreeMap<String, f64>,
    /// Labels that come and go, such as those of placement groups.
    #[serde(alias = "dynamic_labels", deserialize_with = "nullable")]
    pub dynamic_labels: BTreeMap<String, String>,
    /// The status of the Ray node.
    #[serde(deserialize_with = "nullable")]
    pub status: NodeStatus,
    /// Milliseconds for which the Ray node has been idle.
    #[serde(alias = "idle_duration_ms", deserialize_with = "integer")]
    #[schemars(schema_with = "integer_schema")]
    pub idle_duration_ms: i64,
    /// Labels that the Ray node keeps.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// The memory really in use in its pod, if Rayfit asks for that and Ray has said it: the GCS
    /// passes it on from the node's dashboard agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_in_use: Option<MemoryInUse>,
}

/// The memory really in use in a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryInUse {
    /// The bytes, without cached files, as Ray's memory monitor counts them.
    pub bytes: i64,
    /// The bytes by which it has grown a second since the report before; 0 if it has not, or if
    /// there was none.
    #[serde(skip_serializing_if = "is_default")]
    pub rise_per_s: i64,
    /// The time at which Rayfit was told, in seconds since 1970.
    pub at: f64,
}

/// The status of a Ray node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[repr(i32)]
pub enum NodeStatus {
    /// Ray does not say.
    Unspecified = 0,
    /// The node has work.
    Running = 1,
    /// The node is gone.
    Dead = 2,
    /// The node has no work.
    Idle = 3,
    /// The node takes no new work and is about to stop.
    Draining = 4,
}

impl<'de> Deserialize<'de> for NodeStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = ["UNSPECIFIED", "RUNNING", "DEAD", "IDLE", "DRAINING"];
        let number = enumerated(deserializer, &names)?;
        Ok(Self::try_from(number).unwrap_or_default())
    }
}

/// A request, and how many units of it are wanted.
#[derive(Clone, PartialEq, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ResourceRequestByCount {
    /// The request of one unit.
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "nullable")]
    pub request: ResourceRequest,
    /// The number of wanted units.
    #[prost(int64, tag = "2")]
    #[serde(deserialize_with = "integer")]
    #[schemars(schema_with = "integer_schema")]
    pub count: i64,
}

/// The resources and labels that one task, actor or bundle needs of a node.
#[derive(Clone, PartialEq, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequest {
    /// The amounts by resource.
    #[prost(btree_map = "string, double", tag = "1")]
    #[serde(alias = "resources_bundle", deserialize_with = "amounts")]
    pub resources_bundle: BTreeMap<String, f64>,
    /// Constraints to be placed together with, or apart from, others.
    #[prost(message, repeated, tag = "2")]
    #[serde(alias = "placement_constraints", deserialize_with = "nullable")]
    pub placement_constraints: Vec<PlacementConstraint>,
    /// The nodes on which the request may be placed: the first label selector that a node satisfies
    /// counts.
    #[prost(message, repeated, tag = "3")]
    #[serde(alias = "label_selectors", deserialize_with = "nullable")]
    pub label_selectors: Vec<LabelSelector>,
}

/// A constraint to be placed together with, or apart from, whatever has a label.
#[derive(Clone, PartialEq, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementConstraint {
    /// Apart from whatever has this label.
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "anti_affinity", skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<Label>,
    /// Together with whatever has this label.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Label>,
}

/// A label of a placement group.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Label {
    /// The name of the label.
    #[prost(string, tag = "1")]
    #[serde(alias = "label_name", deserialize_with = "nullable")]
    pub label_name: String,
    /// The value of the label.
    #[prost(string, tag = "2")]
    #[serde(alias = "label_value", deserialize_with = "nullable")]
    pub label_value: String,
}

/// A label selector: label constraints that must all hold.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// The label constraints.
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "label_constraints", deserialize_with = "nullable")]
    pub label_constraints: Vec<LabelConstraint>,
}

/// One label, with the values that it must have or must not have.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelConstraint {
    /// The key of the label.
    #[prost(string, tag = "1")]
    #[serde(alias = "label_key", deserialize_with = "nullable")]
    pub label_key: String,
    /// The operator: the label must have one of the values, or none of them.
    #[prost(enumeration = "LabelOperator", tag = "2")]
    #[serde(deserialize_with = "operator", serialize_with = "operator_name")]
    #[schemars(with = "LabelOperator")]
    pub operator: i32,
    /// The values that the operator is about.
    #[prost(string, repeated, tag = "3")]
    #[serde(alias = "label_values", deserialize_with = "nullable")]
    pub label_values: Vec<String>,
}

/// The operator of a label constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, prost::Enumeration, Serialize, JsonSchema)]
#[repr(i32)]
pub enum LabelOperator {
    /// Ray does not say; the constraint is never satisfied.
    #[serde(rename = "LABEL_OPERATOR_UNSPECIFIED")]
    Unspecified = 0,
    /// The label is there and has one of the values.
    #[serde(rename = "LABEL_OPERATOR_IN")]
    In = 1,
    /// The label is missing or has none of the values.
    #[serde(rename = "LABEL_OPERATOR_NOT_IN")]
    NotIn = 2,
}

/// The names of the operators, by their numbers.
const OPERATORS: [&str; 3] = [
    "LABEL_OPERATOR_UNSPECIFIED",
    "LABEL_OPERATOR_IN",
    "LABEL_OPERATOR_NOT_IN",
];

fn operator<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    enumerated(deserializer, &OPERATORS)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn operator_name<S: Serializer>(operator: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    // An operator of a later Ray counts as unspecified.
    let operator = LabelOperator::try_from(*operator).unwrap_or_default();
    operator.serialize(serializer)
}

/// A placement group, which is placed as a whole or not at all.
#[derive(Clone, PartialEq, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GangResourceRequest {
    /// The bundles, as older versions of Ray report them.
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "nullable")]
    pub requests: Vec<ResourceRequest>,
    /// The id, the strategy and the state: `<placement group id>:<STRATEGY>|<STATE>`.
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "nullable")]
    pub details: String,
    /// The bundles with their label selectors. Only the first entry counts.
    #[prost(message, repeated, tag = "3")]
    #[serde(alias = "bundle_selectors", deserialize_with = "nullable")]
    pub bundle_selectors: Vec<BundleSelector>,
}

/// One way to place a placement group.
#[derive(Clone, PartialEq, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BundleSelector {
    /// The bundles.
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "resource_requests", deserialize_with = "nullable")]
    pub resource_requests: Vec<ResourceRequest>,
}

/// The demand of `request_resources()`.
#[derive(Clone, PartialEq, prost::Message, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterResourceConstraint {
    /// The requests, with how many units of each are wanted.
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "resource_requests", deserialize_with = "nullable")]
    pub resource_requests: Vec<ResourceRequestByCount>,
}

/// The live Ray node of each pod, by the pod's name.
pub type LiveNodes<'a> = HashMap<&'a str, &'a NodeState>;

impl ClusterResourceState {
    /// The live Ray node of each pod. A pod has several for a while after its container was
    /// restarted, or for good where somebody starts a second raylet. It is one node all the same,
    /// because groups count pods. A Ray node that stays comes before one that is draining, and then
    /// the one that had work last.
    pub fn live(&self) -> LiveNodes<'_> {
        // The choice must not depend on the order in which Ray reports them, which may change.
        let rank = |node: &NodeState| (node.status == NodeStatus::Draining, node.idle_duration_ms);
        let mut live = LiveNodes::default();
        live.reserve(self.node_states.len());
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
    /// True for a Ray node that exists, with or without taking new work.
    pub fn is_alive(&self) -> bool {
        // A node of unknown status takes no work, so nothing may be placed on it.
        !matches!(self.status, NodeStatus::Dead | NodeStatus::Unspecified)
    }

    /// True for a Ray node that runs, with work or without.
    pub fn is_running(&self) -> bool {
        matches!(self.status, NodeStatus::Running | NodeStatus::Idle)
    }

    /// The amounts in use on it of the resources that its users ask for. Resources that Ray counts
    /// for itself are left out: addresses, the resources of placement groups, which CPU and the
    /// others count too, and the object store.
    pub fn used_amounts(&self) -> BTreeMap<String, f64> {
        let is_asked = |name: &str| {
            !name.starts_with("node:") && !name.contains("_group_") && name != "object_store_memory"
        };
        let totals = self.total_resources.iter();
        let in_use = totals.filter_map(|(name, total)| {
            let free = self.available_resources.get(name).copied().unwrap_or(0.0);
            let used = total - free;
            (is_asked(name) && used > 0.0).then(|| (name.clone(), used))
        });
        in_use.collect()
    }

    /// True for the head: only the head has this resource.
    pub fn is_head(&self) -> bool {
        self.total_resources.contains_key(HEAD_RESOURCE)
    }
}

impl GangResourceRequest {
    /// The id and strategy of the placement group, as far as Ray gives them.
    pub fn title(&self) -> &str {
        self.details.split('|').next().unwrap_or_default()
    }
}
