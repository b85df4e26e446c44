//! The two webhooks as an HTTP router, without the listener, so that tests can call it directly.
//!
//! The steps of a review: [`limits`] reads the body within limits, [`review`] parses the envelope
//! without copying the objects in it, [`skip`] allows from the raw bytes what needs no check,
//! [`tree`] parses them into trees that borrow the body, [`decide`] asks the core, and [`response`] writes the
//! answer. [`mod@router`] connects them. For a new pod, [`new_pods`] asks for its RayCluster before that. All except the
//! router, the limits and the reads of RayClusters are pure.
//!
//! Invariant: a review that fails in any way ends alone, and is answered.

pub mod audit;
pub mod deadline;
pub mod decide;
pub mod limits;
pub mod new_pods;
pub mod record;
mod resize;
pub mod response;
pub mod review;
pub mod router;
pub mod skip;
pub mod tree;

pub use limits::{AdmissionCapacity, AdmissionLimits};
pub use review::Webhook;
pub use router::{Admission, router};
