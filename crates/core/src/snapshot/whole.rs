//! The snapshot, as decisions take it, and as it is written in a file: there with pods as the API server returns them,
//! whoever owns them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gcs;
use super::history::History;
use super::kubernetes::cluster_object::ClusterObject;
use super::kubernetes::kube_node::{KubeNode, NodeLoads, add_loads};
use super::kubernetes::ownership::{ClusterId, OwnPods};
use super::kubernetes::pod_object::PodObject;
use super::moment::seconds;

/// The `apiVersion` of a snapshot.
pub const API_VERSION: &str = "rayfit.dev/v1alpha1";

/// The `kind` of a snapshot.
pub const KIND: &str = "Snapshot";

/// The state of one RayCluster at one moment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", from = "SnapshotFile")]
#[schemars(with = "SnapshotFile")]
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
        seconds(&self.time)
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

/// The state of one RayCluster at one moment.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
struct SnapshotFile {
    /// The version of the format, `rayfit.dev/v1alpha1`.
    api_version: String,
    /// The kind of the object, `Snapshot`.
    kind: String,
    /// The time of the snapshot, in RFC 3339.
    time: String,
    /// The RayCluster as the API server returns it.
    ray_cluster: Value,
    /// The pods of the RayCluster, as the API server returns them. A pod belongs to the RayCluster
    /// if it is in its namespace, has its label ray.io/cluster and is controlled by it. Where the
    /// RayCluster has no UID, the owner is not compared. Pods of others may be in the list: they
    /// only count as load on their node.
    #[serde(default)]
    pods: Vec<PodObject>,
    /// The Kubernetes nodes that its pods run on, or could run on. Without them no resize is
    /// checked for node headroom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<KubeNode>>,
    /// The requests of other pods on these nodes, by the name of the node.
    #[serde(default, skip_serializing_if = "NodeLoads::is_empty")]
    loads: NodeLoads,
    /// Ray's report: `ray.rpc.autoscaler.ClusterResourceState` in protobuf's canonical JSON.
    #[serde(default)]
    gcs: gcs::ClusterResourceState,
    /// The controller's memory of earlier rounds. A decision without it is safe too.
    #[serde(default)]
    history: History,
}

impl From<SnapshotFile> for Snapshot {
    fn from(file: SnapshotFile) -> Self {
        let cluster = ClusterId::of(&file.ray_cluster);
        let (pods, others) = OwnPods::divide(cluster, file.pods);
        let mut loads = file.loads;
        add_loads(&mut loads, &others);
        Self {
            api_version: file.api_version,
            kind: file.kind,
            time: file.time,
            ray_cluster: file.ray_cluster.into(),
            pods,
            nodes: file.nodes,
            loads,
            gcs: file.gcs,
            history: file.history,
        }
    }
}
