//! Ray in virtual time: nodes, the jobs on them, what waits, and what the GCS says of all this.
//!
//! In come jobs that are submitted, nodes that join and leave, and calls of a scaler; out comes which
//! jobs start, for the world to end them in time. What always holds: a job holds resources of nodes
//! that were alive when it started, and no node gives more than it has, except after its size was
//! reduced by less than what was in use.

mod cluster;
mod gcs;
pub mod jobs;
pub mod node;
mod placing;
pub mod resources;

pub use cluster::{Ray, Usage};
