//! The two webhooks as an HTTP router, without the listener: tests call it directly.
//!
//! One review goes: [`limits`] reads the body within bounds, [`review`] reads the envelope without
//! copying the objects in it, [`skip`] answers what needs no judging from the raw bytes, [`tree`]
//! reads the rest as far as it is looked at, [`decide`] asks the core, [`response`] writes the
//! answer. [`mod@router`] strings them together. All but the router and the limits are pure.

pub mod audit;
pub mod deadline;
pub mod decide;
pub mod limits;
mod objects;
pub mod record;
mod resize;
pub mod response;
pub mod review;
pub mod router;
pub mod skip;
pub mod tree;
mod webhook;

pub use decide::Engine;
pub use limits::AdmissionLimits;
pub use router::{Admission, router};
pub use webhook::Webhook;
