//! A snapshot.

use serde::Serialize;
use serde_json::Value;

use super::gcs;
use super::history::History;
use super::kubernetes::kube_node::{KubeNode, NodeLoads};
use super::kubernetes::ownership::OwnPods;

/// The `apiVersion` of a snapshot.
pub const API_VERSION: &str = "rayfit.dev/v1alpha1";

/// The `kind` of a snapshot.
pub const KIND: &str = "Snapshot";

/// The state of one RayCluster at one moment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// `rayfit.dev/v1alpha1`
    pub api_version: String,
    /// `Snapshot`
    pub kind: String,
    /// When it was taken, RFC 3339.
    pub time: String,
    /// The RayCluster as the API server returns it.
    pub ray_cluster: Value,
    /// Its pods, and nobody else's.
    pub pods: OwnPods,
    /// The Nodes that its pods run on, or could. Without them no resize is checked for room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<KubeNode>>,
    /// What pods of others request of these nodes.
    #[serde(skip_serializing_if = "NodeLoads::is_empty")]
    pub loads: NodeLoads,
    /// `ray.rpc.autoscaler.ClusterResourceState` in protobuf's canonical JSON.
    pub gcs: gcs::ClusterResourceState,
    /// What the controller remembers of earlier rounds; a decision without it is safe too.
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
