//! The decisions of a cluster's admins: the mode of each rule, limits on what objects may request,
//! and the values of defaults.
//!
//! A `RayPolicy` is stored as [`resource`] says, read once by [`raypolicy`](crate::raypolicy) into
//! a [`Policy`], and combined with the others into the [`Settings`] for one object by [`Policies`].
//!
//! In: RayPolicies that were read. Out: the settings for one object, by folding the policies that match it. Invariant:
//! the order in which policies were read does not matter.

pub(crate) mod exemption;
mod mode;
mod modes;
mod policies;
pub mod resource;
mod scope;
pub mod selector;
pub mod settings;

pub use exemption::Exemption;
pub use mode::Mode;
pub use modes::{DecidedBy, Modes, Ruling};
pub use policies::{EffectivePolicy, Policies, Policy};
pub use resource::{Limit, Limits};
pub use settings::Settings;
