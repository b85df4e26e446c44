//! Effects: the calls that change a cluster, their order, and what their failures mean.
//!
//! A plan goes in, and [effects](effect) in [chains](chain) come out. A chain depends on nothing
//! outside it. Each effect is safe to repeat: a process that is killed between two effects leaves
//! in the objects what the next process needs. [What a failure means](failure) decides what is done
//! next, and what users are told to do.
//!
//! Invariant: effects of one cluster concern no object of another one.

pub mod chain;
pub(crate) mod drain;
pub mod effect;
pub(crate) mod end;
pub mod failure;
pub(crate) mod hold;
pub(crate) mod pod_level;
pub(crate) mod replicas;
pub(crate) mod resize;
pub(crate) mod size;
