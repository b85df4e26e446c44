//! The snapshot, as decisions take it.

use serde::Serialize;

use super::gcs;
use super::history::History;
use super::kubernetes::cluster_object::ClusterObject;
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
    /// The version of the format, `rayfit.dev/v1alpha1`.
    pub api_version: String,
    /// The kind of the object, `Snapshot`.
    pub kind: String,
    /// The time of the snapshot, in RFC 3339.
    pub time: String,
    /// The RayCluster, whose JSON form is the object as the API server returns it.
    pub ray_cluster: ClusterObject,
    /// The pods of the RayCluster, and no others.
    pub pods: OwnPods,
    /// The Kubernetes nodes that its pods run on, or could run on. Without them no resize is
    /// checked for node headroom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<KubeNode>>,
    /// The requests of other pods on these nodes.
    #[serde(skip_serializing_if = "NodeLoads::is_empty")]
    pub loads: NodeLoads,
    /// Ray's report: `ray.rpc.autoscaler.ClusterResourceState` in protobuf's canonical JSON.
    pub gcs: gcs::ClusterResourceState,
    /// The controller's memory of earlier rounds. A decision without it is safe too.
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
        &self.pods.cluster().name
    }

    /// The namespace and name of the RayCluster, as `namespace/name`, as far as it has them.
    pub fn title(&self) -> String {
        match &self.pods.cluster().namespace {
            Some(namespace) => format!("{namespace}/{}", self.cluster_name()),
            None => self.cluster_name().to_owned(),
        }
    }
}
