//! Growing a pod in place.
//!
//! This module takes a pod, the resize limits of its group and the headroom of its Kubernetes node.
//! It gives back a [`Resize`](resize::Resize): the size that the pod has, the size that it was
//! asked to become, and how far it may grow. A pod never grows above the resize limits of its
//! group, nor above what its node is known to have left.

pub(crate) mod headroom;
pub(crate) mod in_use;
pub(crate) mod pod_size;
pub(crate) mod resize;
pub(crate) mod size;
pub(crate) mod suggestion;
