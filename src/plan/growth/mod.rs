//! Growing a pod in place.
//!
//! In come a pod, its group's limits and the room on its Kubernetes node; out comes a
//! [`Resize`](resize::Resize): what the pod has, what it was asked to become, and how far it may grow.
//! A pod never grows above the limits of its group, nor above what its node is known to have left.

pub(crate) mod container;
pub(crate) mod headroom;
pub(crate) mod pod_size;
pub(crate) mod resize;
pub(crate) mod size;
pub(crate) mod suggestion;
pub(crate) mod wait;
