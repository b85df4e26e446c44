//! The Kubernetes nodes: what scheduler and node autoscaler do, and what clusters that share nodes hear of
//! each other.
//!
//! `scheduler` takes pods that wait, and nodes that are full or empty. It binds pods, and adds and removes
//! nodes; `consolidation` empties nodes whose pods fit elsewhere. `sharing` takes what happens to one cluster, and returns notices for the others. Invariant: what is
//! bound, of whatever cluster, takes the room of all.

mod consolidation;
mod scheduler;
mod sharing;
