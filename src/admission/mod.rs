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
pub mod refusal;
mod resize;
pub mod response;
pub mod review;
pub mod router;
pub mod skip;
pub mod tree;
pub mod turns;

pub use decide::Engine;
pub use limits::AdmissionLimits;
pub use router::{Admission, router};

/// Which of the two webhooks is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// Fills in defaults; never denies.
    Mutate,
    /// Judges; never changes.
    Validate,
}

impl Webhook {
    /// The path of its URL, the same for every kind: the kind is in the review.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
        }
    }

    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}
