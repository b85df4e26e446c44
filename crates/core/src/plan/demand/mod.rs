//! The demand of a cluster.
//!
//! This module takes what the GCS reports as pending. It gives back [request batches](requests::RequestBatch) of
//! equal [shapes](shape), in the order in which Ray serves them; [`requests`] says what counts as demand,
//! from where, and in which order. Texts become [numbers](names), so
//! that comparing them is cheap, and each distinct request is kept once.

pub(crate) mod names;
pub(crate) mod placement_group;
pub(crate) mod requests;
pub(crate) mod shape;
