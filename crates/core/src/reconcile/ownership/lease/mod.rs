//! The Lease: one replica of the controller leads, and scales all clusters; the others stand by.
//!
//! [`record`] is what the Lease says, [`leader`] decides which request a replica sends next, and until when it
//! leads, and [`trust`] whether a write may begin. Time is an argument of all of them.

pub mod leader;
pub mod record;
pub mod trust;
