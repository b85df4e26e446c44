//! A RayCluster's world in virtual time, in which the code that ships scales it.
//!
//! - [`trace`]: what a workload asks, from files of users

pub mod trace;
