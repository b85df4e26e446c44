//! Which demand goes to which node.
//!
//! In come nodes, groups and batches of requests; out come the same nodes with what was placed on them,
//! and the new nodes that are needed. [`state`] is what packing works on, [`pack`] the order of its steps,
//! [`candidates`] the search for the best node, [`fit`] one node with all requests. What it may cost is
//! [bounded](budget), whoever asks.

pub(crate) mod budget;
pub(crate) mod candidates;
pub(crate) mod classes;
pub(crate) mod fit;
pub(crate) mod grow;
pub(crate) mod pack;
pub(crate) mod placing;
pub(crate) mod rank;
pub(crate) mod state;
pub(crate) mod steps;
