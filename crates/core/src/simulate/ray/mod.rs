//! Ray in virtual time: nodes, the jobs on them, the jobs that wait, and what the GCS reports.
//!
//! It takes jobs that are submitted, nodes that join and leave, and calls of a scaler. It returns the jobs
//! that start, and the world ends them in time. Invariants: a job holds resources of nodes that were alive
//! when it started, and no node gives more than it has, except after its size was reduced below what was
//! in use.

mod cluster;
mod gcs;
pub mod jobs;
mod memory;
pub mod node;
mod objects;
mod placing;
pub mod resources;

pub use cluster::Ray;
