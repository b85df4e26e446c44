//! Faults: simulations in which things go wrong, and what must hold all the same.
//!
//! In comes a [`plan::FaultPlan`], which is a scene and a list of faults as lines of JSON that a person
//! can write too; out comes the first rule that was broken, with what was done last.
//!
//! - [`plan`]: faults, and when, as data; [`draw`] makes such a plan from a seed
//! - [`scene`]: the cluster, the jobs and the world in which they happen
//! - [`violation`]: the rules; [`checker`] holds them against a world after every event
//! - [`trial`]: one simulation with faults, and what happens after the last of them; `inject` has what
//!   each fault does, `servable` which jobs have to be served
//!
//! What always holds: equal plans lead to equal ends.

pub mod checker;
pub mod draw;
mod inject;
pub mod plan;
pub mod scene;
mod servable;
pub mod trial;
pub mod violation;
