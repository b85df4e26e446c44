//! The input of a decision: one value made of native formats only.
//!
//! A snapshot holds the RayCluster and its own Pods, optionally the Kubernetes Nodes and what the
//! pods of others request of them, Ray's `ClusterResourceState` in protobuf's canonical JSON, and
//! what the controller remembers of earlier rounds. Plans, tests, benchmarks and bug reports all
//! use it. Whose a pod is, is decided when a snapshot is made; nobody has to ask again.
//!
//! Reading order: this file, [`allowed`] (what is kept of a
//! RayCluster), [`pod_object`] (what is kept of a pod), [`ownership`] (whose it is),
//! [`pod`] (as decisions see it), [`amounts`], [`requests`] and [`kube_node`] (what it takes of its
//! node), [`gcs`] (what Ray reports), [`history`] (what is remembered), [`autoscaling_state`] (what
//! Ray is told in turn).

pub mod allowed;
pub mod amounts;
pub mod autoscaling_state;
mod canonical;
mod file;
pub mod gcs;
pub mod history;
pub mod kubernetes;
mod moment;
mod node_id;
mod read;
mod whole;

pub use history::History;
pub use kubernetes::kube_node::{KubeNode, NodeLoads};
pub use kubernetes::ownership::{ClusterId, OwnPods};
pub use kubernetes::{kube_node, ownership, pod, pod_object, requests};
pub use moment::moment;
pub use node_id::{NodeId, NotANodeId};
pub use read::{SnapshotError, read_all};
pub use whole::{API_VERSION, KIND, Snapshot};
