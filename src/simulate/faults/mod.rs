//! Faults: simulations in which things go wrong, and the rules that must hold all the same.
//!
//! A simulation takes a [`plan::FaultPlan`]: a scene and a list of faults, which are also lines of JSON that
//! a person can write. It returns the first rule that was broken, with the last entries of the log.
//!
//! - [`plan`]: faults, and when, as data; [`draw`] makes such a plan from a seed,
//!   `draw_last` what it got last
//! - [`scene`]: the cluster, the jobs and the world in which they happen; [`standby`] has what a policy
//!   keeps ready there
//! - [`violation`]: the rules; [`checker`] checks them after every event, with `harm` for the work that
//!   runs
//! - [`neighbours`]: several clusters at the same time, whose requests pass one gate; `shared` has what
//!   those of one world share
//! - [`trial`]: one simulation with faults, and what happens after the last of them; `inject` has what
//!   each fault does, `servable` what must be so in the end
//!
//! Invariant: equal plans give equal results.

pub mod checker;
pub mod draw;
mod draw_last;
mod harm;
mod inject;
pub mod neighbours;
pub mod plan;
pub mod scene;
mod servable;
mod shared;
pub mod standby;
pub mod trial;
pub mod violation;
