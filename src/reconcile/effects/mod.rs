//! What can be done to a cluster, in which order, and what a failure means.
//!
//! In comes a plan; out come [effects](effect) in [chains](chain), which depend on nothing outside
//! their chain. Each effect is safe to repeat: a process that is killed between two of them leaves what
//! the next one needs.

pub mod chain;
pub(crate) mod done;
pub(crate) mod drain;
pub mod effect;
pub mod failure;
pub(crate) mod replicas;
pub(crate) mod resize;
pub(crate) mod size;
