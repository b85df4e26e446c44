//! Snapshots, the input of a decision: one value that is made of native formats only.
//!
//! A snapshot holds the RayCluster and its own pods, optionally the Kubernetes nodes and what the
//! pods of others request of them, Ray's `ClusterResourceState` in protobuf's canonical JSON, and
//! what the controller remembers of earlier rounds. Plans, tests, benchmarks and bug reports all
//! use it. Which RayCluster a pod belongs to is decided once, when a snapshot is made.
//!
//! Reading order: `whole`, [`allowed`] (what is kept of a RayCluster),
//! [`cluster_object`] and [`group_spec`] (a RayCluster and its groups as decisions see them), [`pod_object`] (what is
//! kept of a pod), [`ownership`] (which RayCluster a pod belongs to), [`pod`] (a pod as decisions
//! see it), [`node_prospect`] and [`prospect_reader`] (what node autoscalers say about it), [`requests`] and [`kube_node`] (what a pod takes of its Kubernetes node), [`taint`] and
//! [`toleration`] (what says that the node goes, and which pods that does not concern),
//! [`gcs`] (what Ray reports), [`history`] and [`resize_memory`] (what is remembered), [`autoscaling_state`] (what Ray is
//! told in turn).

pub mod allowed;
pub mod autoscaling_state;
mod canonical;
pub mod gcs;
pub mod history;
pub mod kubernetes;
mod moment;
mod node_id;
mod read;
pub mod resize_memory;
mod whole;

pub(crate) use canonical::is_default;
pub use history::History;
pub use kubernetes::cluster_object::ClusterObject;
pub use kubernetes::kube_node::{KubeNode, NodeLoads};
pub use kubernetes::leading_head::{HeadSight, leading_head};
pub use kubernetes::ownership::{ClusterId, OwnPods};
pub use kubernetes::{
    cluster_object, group_spec, kube_node, node_prospect, ownership, pod, pod_condition,
    pod_object, prospect_reader, requests, taint, toleration,
};
pub use moment::{moment, whole_moment};
pub use node_id::NodeId;
pub use read::read_all;
pub use whole::{API_VERSION, KIND, Snapshot};
