//! Packing: which demand goes to which node.
//!
//! Packing takes nodes, groups and request batches. It gives back the same nodes with the requests
//! that were placed on them, and the new nodes that are needed. [`state`] holds what packing works
//! on, [`pack`] one packing and Ray's order of its steps, [`steps`] the improved order, [`candidates`] the search
//! for the best node, and [`fit`] tries all requests on one node. [`servable`] says which demand that is left more room could serve. The
//! [work budget](budget) bounds what packing may cost, whatever the demand is.

pub(crate) mod budget;
pub(crate) mod candidates;
pub(crate) mod fit;
pub(crate) mod grow;
pub(crate) mod launch;
pub(crate) mod pack;
pub(crate) mod servable;
pub(crate) mod state;
pub(crate) mod steps;
