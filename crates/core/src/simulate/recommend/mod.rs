//! A search, by simulation, for settings of a RayCluster that suit a workload better.
//!
//! - [`bounds`]: the bounds within which it searches
//! - [`space`]: what can be set on a RayCluster and of the RayPolicy that holds for it, and the values to try
//! - [`patch`]: what a choice of values changes, as a JSON patch and in words
//! - [`seeds`]: the mean of simulations that differ in their seed
//! - [`trial`]: the result of a choice, and which of two is better
//! - [`front`]: the choices that no other choice beats, and the knee among them
//! - [`search`]: which choices are tried, one after the other
//! - [`recommendation`]: which choice to take, and how often each was worse than today
//!
//! Invariants: today's settings are tried first, the simulated RayCluster is today's with the patch
//! applied, and nothing is recommended that admission would newly refuse.

pub mod bounds;
pub mod front;
pub mod patch;
pub mod recommendation;
pub mod search;
pub mod seeds;
pub mod space;
pub mod trial;
