//! RayPolicy objects: from what is written to what holds, and what is wrong with it.
//!
//! [`mod@compile`] reads one policy; the other files find what a person would want to know of it before it
//! holds: keys that nobody reads (`unknown_keys`), selectors that match nothing (`vacuous`), limits
//! that can be walked around (`avoidable`), and all of it for the admission of policies ([`review`]).

pub(crate) mod avoidable;
pub mod compile;
pub mod review;
pub(crate) mod unknown_keys;
pub(crate) mod vacuous;

pub use avoidable::avoidable;
pub use compile::{PolicyFault, Weight, compile};
pub use unknown_keys::unknown;
