//! What is kept of Kubernetes objects, and what decisions read from it.

pub mod kube_node;
pub mod ownership;
pub mod pod;
pub mod pod_object;
pub mod requests;
