//! Reading and validating RayPolicy objects.
//!
//! [`mod@compile`] reads one policy, and `standby` what it keeps ready. The other files find problems that its author should know:
//! unknown keys (`unknown_keys`), selectors that match nothing (`vacuous`) and limits that users
//! can avoid (`avoidable`). [`review`] combines all of them for the admission of policies.
//!
//! In: an object of kind RayPolicy. Out: a [`Policy`](crate::policy::Policy), or what is wrong with it and where. Invariant:
//! a part that is wrong takes no other part with it, unless without it the policy would match more.

pub(crate) mod avoidable;
pub mod compile;
pub(crate) mod fault;
pub mod review;
pub mod sidecar_settings;
pub(crate) mod standby;
pub(crate) mod unknown_keys;
pub(crate) mod vacuous;

pub use avoidable::avoidable;
pub use compile::compile;
pub use fault::{PolicyFault, Weight};
pub use unknown_keys::unknown;
