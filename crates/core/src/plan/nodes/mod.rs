//! The observed state of the cluster, in the form in which packing takes it.
//!
//! This module takes the RayCluster, its pods and the Ray nodes of a snapshot. It gives back
//! [groups](group) and [nodes](node). Each node is there once: it is running, pending or draining.
//! Parts of the objects that Ray cannot use become [problems], and never end the decision about the
//! rest. What only slices know about a node is in their [tables], by its number.

pub(crate) mod amounts;
pub(crate) mod group;
pub(crate) mod node;
pub(crate) mod preference;
pub(crate) mod problems;
pub(crate) mod rows;
pub(crate) mod tables;
pub(crate) mod view;
