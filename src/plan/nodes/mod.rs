//! The observed state, as packing takes it.
//!
//! In come the RayCluster, its pods and the Ray nodes of a snapshot; out come [groups](group) and
//! [nodes](node), each node once: running, on its way, or leaving. What Ray cannot use of the objects is
//! a [problem](problems), and never ends the decision about the rest.

pub(crate) mod assemble;
pub(crate) mod group;
pub(crate) mod node;
pub(crate) mod problems;
pub(crate) mod raylet;
pub(crate) mod rows;
pub(crate) mod view;
