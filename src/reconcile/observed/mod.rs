//! What is observed of a cluster besides its demand: whether anything goes on in it, whether it can
//! be observed at all, who uses it, and how soon it is looked at again.

pub(crate) mod activity;
pub mod blind;
pub mod cadence;
pub mod clock_skew;
pub mod outage;
pub(crate) mod stabilisation;
pub mod users;
