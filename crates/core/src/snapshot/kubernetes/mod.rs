//! RayClusters, pods and nodes of Kubernetes: which of their fields are kept, and what decisions read from them.
//!
//! In: objects as the API server sends them. Out: the fields that decisions read, in types of their own. Invariant: what
//! is kept decides as the whole object does.

pub mod cluster_object;
pub mod group_spec;
pub mod kube_node;
pub mod leading_head;
pub mod node_prospect;
pub mod ownership;
pub mod pod;
pub mod pod_condition;
pub mod pod_object;
pub mod prospect_reader;
pub mod requests;
pub mod taint;
pub mod toleration;
