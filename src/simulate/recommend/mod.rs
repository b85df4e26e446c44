//! A search, by simulation, for settings of a RayCluster that suit a workload better.
//!
//! - [`bounds`]: within which bounds users let it search
//! - [`space`]: what can be set on a RayCluster, and the values to try
//! - [`patch`]: what a choice of values changes, as a JSON patch and in words
//! - [`trial`]: what came of a choice, and which of two is better
//! - [`front`]: the choices than which none is better, and the knee among them
//! - [`search`]: which choices are tried, one after the other
//! - [`recommendation`]: which choice to take, and how often each was worse than today
//!
//! What always holds: today's settings are tried first, what is simulated is today's RayCluster with
//! the patch applied, and nothing is recommended that admission would newly refuse.

pub mod bounds;
pub mod front;
pub mod patch;
pub mod recommendation;
pub mod search;
pub mod space;
pub mod trial;
