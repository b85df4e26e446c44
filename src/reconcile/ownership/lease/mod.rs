//! The Lease: one replica of the controller leads, and scales all clusters; the others stand by.
//!
//! [`record`] is what the Lease says, [`leader`] decides which request a replica sends next, and until when it
//! leads, and [`trust`] whether a write may begin. [`played`] is the Lease of simulations. Time is an argument of all of them.

#[cfg(test)]
mod interleavings;
pub mod leader;
pub mod played;
pub mod record;
pub mod trust;
