//! Snapshots, the input of a decision: one value that is made of native formats only.
//!
//! A snapshot holds the RayCluster and its own pods, optionally the Kubernetes nodes and what the
//! pods of others request of them, Ray's `ClusterResourceState` in protobuf's canonical JSON, and
//! what the controller remembers of earlier rounds. Plans, tests, benchmarks and bug reports all
//! use it. Which RayCluster a pod belongs to is decided once, when a snapshot is made.
//!
//! Reading order: this file, [`allowed`] (what is kept of a RayCluster), [`pod_object`] (what is
//! kept of a pod), [`ownership`] (which RayCluster a pod belongs to), [`pod`] (a pod as decisions
//! see it), [`amounts`], [`requests`] and [`kube_node`] (what a pod takes of its Kubernetes node),
//! [`gcs`] (what Ray reports), [`history`] (what is remembered), [`autoscaling_state`] (what Ray is
//! told in turn).

pub mod allowed;
pub mod amounts;
pub mod autoscaling_state;
mod canonical;
mod file;
pub mod gcs;
pub mod history;
pub mod kube_node;
mod moment;
mod node_id;
pub mod ownership;
pub mod pod;
pub mod pod_object;
mod read;
pub mod requests;

pub use history::History;
pub use kube_node::{KubeNode, NodeLoads};
pub use moment::moment;
pub use node_id::{NodeId, NotANodeId};
pub use ownership::{ClusterId, OwnPods};
pub use read::{SnapshotError, read_all};

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The `apiVersion` of a snapshot.
pub const API_VERSION: &str = "rayfit.dev/v1alpha1";

/// The `kind` of a snapshot.
pub const KIND: &str = "Snapshot";

/// The state of one RayCluster at one moment.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", from = "file::SnapshotFile")]
pub struct Snapshot {
    /// The version of the format, `rayfit.dev/v1alpha1`.
    pub api_version: String,
    /// The kind of the object, `Snapshot`.
    pub kind: String,
    /// When the snapshot was taken, in RFC 3339.
    pub time: String,
    /// The RayCluster as the API server returns it.
    pub ray_cluster: Value,
    /// The pods of the RayCluster, and no others.
    pub pods: OwnPods,
    /// The Kubernetes nodes that its pods run on, or could run on. Without them no resize is
    /// checked for node headroom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<KubeNode>>,
    /// What the pods of others request of these nodes.
    #[serde(skip_serializing_if = "NodeLoads::is_empty")]
    pub loads: NodeLoads,
    /// What Ray reports: `ray.rpc.autoscaler.ClusterResourceState` in protobuf's canonical JSON.
    pub gcs: gcs::ClusterResourceState,
    /// What the controller remembers of earlier rounds. A decision without it is safe too.
    pub history: History,
}

impl JsonSchema for Snapshot {
    fn schema_name() -> Cow<'static, str> {
        file::SnapshotFile::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        file::SnapshotFile::json_schema(generator)
    }
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

    /// The namespace and name of the RayCluster, as `namespace/name`, as far as it has them.
    pub fn title(&self) -> String {
        let namespace = self.ray_cluster.pointer("/metadata/namespace");
        match namespace.and_then(Value::as_str) {
            Some(namespace) => format!("{namespace}/{}", self.cluster_name()),
            None => self.cluster_name().to_owned(),
        }
    }
}
