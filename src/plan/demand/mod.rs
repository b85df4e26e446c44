//! What is asked for.
//!
//! In comes what the GCS reports as pending; out come [batches](batch) of equal [shapes](shape), in the
//! order in which Ray serves them. Texts have become [numbers](names), so that comparing is cheap, and
//! each distinct request is there once.

pub(crate) mod batch;
pub(crate) mod names;
pub(crate) mod requests;
pub(crate) mod shape;
