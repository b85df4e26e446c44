//! The input of a decision: one value made of native formats only.
//!
//! A snapshot holds the RayCluster and its Pods as the API server returns them, optionally the
//! Kubernetes Nodes, Ray's `ClusterResourceState` in protobuf's canonical JSON, and what the
//! controller remembers of earlier rounds. Plans, tests, benchmarks and bug reports all use it.
//!
//! Reading order: this file, [`gcs`] (what Ray reports), [`history`] (what is remembered),
//! [`pod`] (what matters of a pod), [`allowed`] (what is kept of a RayCluster), [`autoscaling_state`] (what Ray is told in turn).

pub mod allowed;
pub mod autoscaling_state;
mod canonical;
pub mod gcs;
pub mod history;
mod moment;
mod node_id;
pub mod pod;
mod read;

pub use history::History;
pub use moment::moment;
pub use node_id::{NodeId, NotANodeId};
pub use read::{SnapshotError, read_all};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The `apiVersion` of a snapshot.
pub const API_VERSION: &str = "rayfit.dev/v1alpha1";

/// The `kind` of a snapshot.
pub const KIND: &str = "Snapshot";

/// The state of one RayCluster at one moment.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// `rayfit.dev/v1alpha1`
    pub api_version: String,
    /// `Snapshot`
    pub kind: String,
    /// When it was taken, RFC 3339.
    pub time: String,
    /// The RayCluster as the API server returns it.
    pub ray_cluster: Value,
    /// Its Pods as the API server returns them. Pods of others on the same nodes may be among
    /// them: they only count as load on their node.
    #[serde(default)]
    pub pods: Vec<Value>,
    /// The Nodes that its pods run on, or could. Without them no resize is checked for room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<Value>>,
    /// `ray.rpc.autoscaler.ClusterResourceState` in protobuf's canonical JSON.
    #[serde(default)]
    pub gcs: gcs::ClusterResourceState,
    /// What the controller remembers of earlier rounds; a decision without it is safe too.
    #[serde(default)]
    pub history: History,
}

impl Snapshot {
    /// The time in seconds since 1970, or `None` if it is not RFC 3339.
    pub fn seconds(&self) -> Option<f64> {
        let time: k8s_openapi::jiff::Timestamp = self.time.parse().ok()?;
        Some(time.as_duration().as_secs_f64())
    }

    /// The name of the RayCluster; empty if it has none.
    pub fn cluster_name(&self) -> &str {
        self.ray_cluster
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// `namespace/name` of the RayCluster, as far as it has them.
    pub fn title(&self) -> String {
        let namespace = self.ray_cluster.pointer("/metadata/namespace");
        match namespace.and_then(Value::as_str) {
            Some(namespace) => format!("{namespace}/{}", self.cluster_name()),
            None => self.cluster_name().to_owned(),
        }
    }
}
