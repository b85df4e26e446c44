//! What is seen of a cluster besides its demand: whether anything moves, whether it can be seen at all,
//! and how soon it is to be looked at again.

pub(crate) mod activity;
pub mod blind;
pub mod cadence;
pub mod outage;
pub(crate) mod stabilisation;
