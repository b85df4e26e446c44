//! What a cluster's admins decided: how far each rule is turned on, what objects may ask for, and
//! what defaults write.
//!
//! A `RayPolicy` is stored as [`resource`] says, read once by [`mod@compile`] into a [`Policy`], and
//! folded with the others into the [`Settings`] for one object by [`Policies`]; findings are then
//! folded under those settings into a [`Verdict`].

mod avoidable;
pub mod compile;
mod compiled;
mod exemption;
mod limits;
mod mode;
mod modes;
mod policies;
pub mod resource;
pub mod review;
mod scope;
pub mod selector;
pub mod settings;
mod unknown_keys;
mod vacuous;
pub mod verdict;

pub use avoidable::avoidable;
pub use compile::{Fault, Weight, compile};
pub use compiled::Policy;
pub use exemption::Exemption;
pub use limits::{Limit, Limits};
pub use mode::{Mode, NoSuchMode};
pub use modes::{Decided, Modes, Ruling};
pub use policies::Policies;
pub use scope::Scope;
pub use settings::{DefaultValues, Settings};
pub use unknown_keys::unknown;
pub use verdict::{Verdict, fold};
