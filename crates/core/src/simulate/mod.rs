//! The simulator: a RayCluster and everything around it, in virtual time.
//!
//! It takes a RayCluster, a [`trace`] of a workload, a strategy and settings of the simulated world. It
//! returns how long jobs waited, what it cost, and which jobs were harmed. The planner and the reconciler
//! are those of the controller; only clocks and calls are simulated.
//!
//! - [`trace`]: what a workload asks, from files of users
//! - [`moment`], [`settings`]: virtual time, and how the world behaves
//! - [`ray`]: Ray: nodes, jobs, and what the GCS says
//! - [`world`]: objects, operator, scheduler, node autoscaler, kubelets
//! - [`scaler`]: the reconciler in this world; [`sending`] has the calls of its rounds
//! - [`observed`]: what it observes
//! - [`run`]: one simulation from beginning to end
//! - [`result`], [`price`]: its result, and its price
//! - [`pools`], [`vary`], [`study`]: what users set: node pools, the fields that are varied, and all
//!   simulations that follow from them
//! - [`recommend`]: a search for settings that suit a workload better
//! - [`report`]: results for people: a table, a page with charts
//!
//! Invariant: equal arguments give equal results, on every machine.

#![allow(
    clippy::cast_precision_loss,
    reason = "counts, bytes and milliseconds of a simulation are exact as floats"
)]

pub mod moment;
pub mod observed;
pub mod pools;
pub mod price;
pub mod ray;
pub mod recommend;
pub mod report;
pub mod result;
pub mod run;
pub mod scaler;
pub mod sending;
pub mod settings;
pub mod study;
pub mod trace;
pub mod vary;
pub mod world;
