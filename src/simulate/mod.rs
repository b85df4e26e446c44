//! A RayCluster's world in virtual time, in which the code that ships scales it.
//!
//! In come a RayCluster, a [`trace`] of a workload, a strategy and how the world behaves; out comes
//! what it led to: how long jobs waited, what it cost, and what was harmed. The planner and the
//! reconciler are those of the controller; only clocks and calls are played.
//!
//! - [`trace`]: what a workload asks, from files of users
//! - [`moment`], [`settings`]: virtual time, and how the world behaves
//! - [`ray`]: Ray: nodes, jobs, and what the GCS says
//! - [`world`]: objects, operator, scheduler, node autoscaler, kubelets
//! - [`scaler`]: the reconciler in this world
//! - [`run`]: one simulation from beginning to end
//! - [`result`]: what came of it
//! - [`faults`]: simulations in which things go wrong
//! - [`pools`], [`vary`], [`study`]: what users ask: node pools, what is varied, all simulations of it
//! - [`recommend`]: a search for settings that suit a workload better
//! - [`report`]: what came of it as people read it: a table, a page with charts
//!
//! What always holds: equal arguments give equal results, on every machine.

pub mod faults;
pub mod moment;
pub mod pools;
pub mod ray;
pub mod recommend;
pub mod report;
pub mod result;
pub mod run;
pub mod scaler;
pub mod settings;
pub mod study;
pub mod trace;
pub mod vary;
pub mod world;
