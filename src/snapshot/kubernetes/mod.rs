//! RayClusters, pods and nodes of Kubernetes: which of their fields are kept, and what decisions read from them.

pub mod cluster_object;
pub mod idle_end;
pub mod kube_node;
pub mod ownership;
pub mod pod;
pub mod pod_object;
pub mod requests;
